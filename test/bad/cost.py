"""Small files that ask for much work: they are refused, or done, within the limits of time and memory."""
import numpy as np

from .kit import F, I, T, const, floats, h, ints, model, val

BOOL = T.BOOL


def sizes(b):
    """Enormous results that a later node makes small again."""
    x = val("x", F, (2,))
    big = ints(1 << 20, 1 << 20, 2)

    def case(name, nodes, inits, code=(3, 4, 5), inputs=(x,)):
        nodes = [*nodes, h.make_node("ReduceSum", ["big"], ["y"], "sum", keepdims=0)]
        b.model("cost_" + name, model(nodes, list(inputs), [val("y", F, ())], inits), code, None, "graph")
    case("expand", [h.make_node("Expand", ["x", "s"], ["big"], "culprit")], [const("s", big)])
    case("tile", [h.make_node("Tile", ["x", "s"], ["big"], "culprit")], [const("s", ints(1 << 38))])
    case("pad", [h.make_node("Pad", ["x", "s"], ["big"], "culprit")], [const("s", ints(1 << 38, 1 << 38))])
    case("constant", [h.make_node("ConstantOfShape", ["s"], ["c"]), h.make_node("Mul", ["c", "x"], ["big"], "culprit")], [const("s", big)])
    case("range", [h.make_node("Range", ["a", "e", "d"], ["big"], "culprit")],
         [const("a", np.float32(0)), const("e", np.float32(1e12)), const("d", np.float32(1))])
    case("resize", [h.make_node("Resize", ["x4", "", "s"], ["big"], "culprit")],
         [const("s", np.array([1, 1, 1e6, 1e6], np.float32))], inputs=[val("x4", F, (1, 1, 2, 2))])
    case("onehot", [h.make_node("OneHot", ["i", "depth", "v"], ["big"], "culprit")],
         [const("depth", np.int64(1 << 39)), const("v", floats(2))], inputs=[val("i", I, (2,))])
    case("cumsum", [h.make_node("Expand", ["x", "s"], ["e"]), h.make_node("CumSum", ["e", "ax"], ["big"], "culprit")],
         [const("s", big), const("ax", np.int64(0))])
    case("matmul", [h.make_node("Expand", ["x", "s"], ["e"]), h.make_node("Expand", ["x", "t"], ["f"]),
                    h.make_node("MatMul", ["e", "f"], ["big"], "culprit")],
         [const("s", ints(1 << 19, 1 << 19)), const("t", ints(1 << 19, 1 << 19))], inputs=[val("x", F, (1,))])
    case("conv", [h.make_node("ConstantOfShape", ["s"], ["w"]), h.make_node("Conv", ["x4", "w"], ["big"], "culprit", pads=[4000] * 4)],
         [const("s", ints(64, 1, 4000, 4000))], inputs=[val("x4", F, (1, 1, 64, 64))])
    case("nonzero", [h.make_node("ConstantOfShape", ["s"], ["w"], value=const("v", np.array([1], np.float32))),
                     h.make_node("NonZero", ["w"], ["n"], "culprit"), h.make_node("Cast", ["n"], ["big"], to=1)],
         [const("s", ints(1 << 20, 1 << 12))])


def loops(b):
    x = val("x", F, (2,))

    def nest(depth, inner):
        names = (f"i{depth}", f"c{depth}", f"v{depth}", f"d{depth}", f"w{depth}")
        step = [h.make_node("Add", [names[2], names[2]], [names[4]])] if not depth else \
            [h.make_node("Loop", ["n", "go", names[2]], [names[4]], f"loop{depth}", body=inner)]
        return h.make_graph([h.make_node("Identity", [names[1]], [names[3]]), *step], "body",
                            [val(names[0], I, ()), val(names[1], BOOL, ()), val(names[2], F, (2,))],
                            [val(names[3], BOOL, ()), val(names[4], F, (2,))])
    body = nest(0, None)
    inits = [const("n", np.int64(1 << 40)), const("go", np.bool_(True))]
    b.model("cost_loop_long", model([h.make_node("Loop", ["n", "go", "x"], ["y"], "culprit", body=body)], [x],
            [val("y", F, (2,))], inits), (3, 4), "culprit", "graph")
    b.model("cost_loop_endless", model([h.make_node("Loop", ["", "go", "x"], ["y"], "culprit", body=body)], [x],
            [val("y", F, (2,))], inits[1:]), (3, 4), "culprit", "graph")
    b.model("cost_loop_no_condition", model([h.make_node("Loop", ["", "", "x"], ["y"], "culprit", body=body)], [x],
            [val("y", F, (2,))]), (3, 4), "culprit", "graph")
    for k in range(1, 4):
        body = nest(k, body)
    inits = [const("n", np.int64(100000)), const("go", np.bool_(True))]
    b.model("cost_loop_nested", model([h.make_node("Loop", ["n", "go", "x"], ["y"], "culprit", body=body)], [x],
            [val("y", F, (2,))], inits), (3, 4), None, "graph")


def many(b):
    """Many nodes: work stays linear in the file."""
    x = val("x", F, (2,))

    def chain(name, count, step, inits=(), out=F):
        nodes = [step(k) for k in range(count)]
        b.model("cost_" + name, model(nodes, [x], [val(f"t{count}", out, None)], inits), 0, None, "graph")

    def link(op, k, *more, **attrs):
        return h.make_node(op, [f"t{k}" if k else "x", *more], [f"t{k + 1}"], **attrs)
    chain("chain_identity", 50000, lambda k: link("Identity", k))
    chain("chain_add", 20000, lambda k: link("Add", k, "w"), [const("w", floats(2))])
    chain("chain_double", 2000, lambda k: h.make_node("Add", [f"t{k}" if k else "x"] * 2, [f"t{k + 1}"]))
    chain("chain_transpose", 10000, lambda k: link("Transpose", k))
    chain("chain_concat", 20, lambda k: h.make_node("Concat", [f"t{k}" if k else "x"] * 2, [f"t{k + 1}"], axis=0))
    chain("chain_softmax", 2000, lambda k: link("Softmax", k))
    wide = [h.make_node("Relu", ["x"], [f"r{k}"]) for k in range(10000)]
    b.model("cost_wide", model([*wide, h.make_node("Concat", [f"r{k}" for k in range(10000)], ["y"], axis=0)], [x],
            [val("y", F, None)]), 0, None, "graph")
    split = h.make_node("Split", ["z"], [f"s{k}" for k in range(5000)], axis=0)
    b.model("cost_split", model([split, h.make_node("Sum", [f"s{k}" for k in range(5000)], ["y"])], [val("z", F, (5000,))],
            [val("y", F, None)]), 0, None, "graph")
    weights = [const(f"w{k}", floats(3)) for k in range(20000)]
    b.model("cost_weights", model([h.make_node("Sum", ["x3", *(w.name for w in weights)], ["y"])], [val("x3", F, (3,))],
            [val("y", F, None)], weights), 0, None, "graph")
    inner = h.make_graph([h.make_node("Relu", ["x"], ["y0"])], "branch", [], [val("y0", F, None)])
    for k in range(1, 10):
        node = h.make_node("If", ["c"], [f"y{k}"], then_branch=inner, else_branch=inner)
        inner = h.make_graph([node], "branch", [], [val(f"y{k}", F, None)])
    b.model("cost_if_doubles", model([h.make_node("If", ["c"], ["y"], "culprit", then_branch=inner, else_branch=inner)],
            [x, val("c", BOOL, ())], [val("y", F, None)]), 0, None, "graph")


def doubled(b):
    """Functions that call the one before twice: short files that stand for long graphs."""
    def chain(name, depth, code, message):
        fns = [h.make_function("f", f"f{k}", ["a"], ["b"],
                               [h.make_node("Relu" if not k else f"f{k - 1}", ["a"], ["t"], domain="" if not k else "f"),
                                h.make_node("Exp" if not k else f"f{k - 1}", ["t"], ["b"], domain="" if not k else "f")],
                               [h.make_opsetid("", 17), h.make_opsetid("f", 1)]) for k in range(depth)]
        m = model([h.make_node(f"f{depth - 1}", ["x"], ["y"], "call", domain="f")], [val("x", F, (2,))], [val("y", F, (2,))])
        m.functions.extend(fns)
        m.opset_import.append(h.make_opsetid("f", 1))
        b.model("cost_functions_" + name, m, code, message, "graph")
    chain("few", 10, 0, None)
    chain("double", 20, 3, "the limit is 250000")


def cases(b):
    for part in (sizes, loops, many, doubled):
        part(b)

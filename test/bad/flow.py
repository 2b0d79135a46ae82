"""Control flow and functions: missing bodies, wrong arity, recursion, and call trees that explode."""
import numpy as np

from .kit import F, I, T, const, h, model, one, relu, val

BOOL = T.BOOL


def body(nodes, inputs, outputs, name="body"):
    return h.make_graph(nodes, name, inputs, outputs)


def branches(b):
    x, c, y = val("x"), val("c", BOOL, ()), [val("y", F, None)]
    good = body([relu("x", "t")], [], [val("t")])
    other = body([h.make_node("Neg", ["x"], ["e"])], [], [val("e")])
    two = body([relu("x", "t1"), relu("x", "t2")], [], [val("t1"), val("t2")])

    def case(name, cond=c, code=4, **attrs):
        b.model("if_" + name, model([h.make_node("If", ["c"], ["y"], "culprit", **attrs)], [x, cond], y), code,
                "culprit", "graph")
    case("no_else", then_branch=good)
    case("no_then", else_branch=other)
    case("no_branches")
    case("branch_is_int", then_branch=1, else_branch=other)
    case("condition_float", val("c", F, ()), then_branch=good, else_branch=other)
    case("condition_vector", val("c", BOOL, (3,)), then_branch=good, else_branch=other)
    case("branch_too_many_results", then_branch=two, else_branch=other)
    case("branch_no_results", then_branch=body([], [], []), else_branch=other)
    case("branch_with_inputs", then_branch=body([relu("q", "t")], [val("q")], [val("t")]), else_branch=other)
    case("branch_ranks_differ", code=3, then_branch=good, else_branch=body([h.make_node("Flatten", ["x"], ["f"], axis=0), h.make_node(
        "Squeeze", ["f"], ["e"])], [], [val("e", F, None)]))
    case("branch_types_differ", code=4, then_branch=good, else_branch=body([h.make_node("Shape", ["x"], ["e"])], [], [val("e", I)]))
    for name, nodes in (("undefined", [relu("nowhere", "t", "inner")]), ("result_undefined", [relu("x", "other")]),
                        ("own_result", [relu("y", "t", "inner")])):
        bad = body(nodes, [], [val("t")])
        b.model("if_branch_" + name, model([h.make_node("If", ["c"], ["y"], "culprit", then_branch=bad, else_branch=other)],
                [x, c], y), level="graph")
    later = body([relu("z", "t", "inner")], [], [val("t")])
    b.model("if_branch_uses_later_value", model([
        h.make_node("If", ["c"], ["y"], "culprit", then_branch=later, else_branch=other), relu("y", "z")], [x, c],
        [val("z", F, None)]), level="graph")
    shadow = body([relu("x", "c")], [], [val("c")])
    b.model("if_branch_shadows", model([h.make_node("If", ["c"], ["y"], "culprit", then_branch=shadow, else_branch=other)],
            [x, c], y), level="any")


def causes(b):
    # what is wrong inside is said, with the way to it
    x, c, go = val("x"), val("c", BOOL, ()), [const("n", np.int64(3)), const("go", np.bool_(True))]
    odd = body([h.make_node("NoSuchOperator", ["v"], ["t"], "inner")], [], [val("t")])
    fine = body([relu("v", "e")], [], [val("e")])
    keep = h.make_node("Identity", ["ci"], ["co"])
    choice = h.make_node("If", ["c"], ["w"], "middle", then_branch=odd, else_branch=fine)
    loop = body([keep, choice], [val("i", I, ()), val("ci", BOOL, ()), val("v")], [val("co", BOOL, ()), val("w")])
    b.model("cause_inside", model([h.make_node("Loop", ["n", "go", "x"], ["y"], "outer", body=loop)], [x, c], [val("y", F, None)], go), 3,
            "'outer' (Loop): its body cannot be built: node 1 'middle' (If): the then branch cannot be built: node 0 'inner' (NoSuchOperator)",
            "graph")
    half = [h.make_node("Cast", ["x"], ["a"], "left_over", to=1), h.make_node("Mul", ["a", "k"], ["y"], "culprit")]
    b.model("cast_left_at_f32", model(half, [val("x", T.FLOAT16)], [val("y", T.FLOAT16, None)], [const("k", np.float16(2))]), 4,
            "the model mixes precisions: the result of node 0 'left_over' (Cast) has another type", "graph")
    tuned = h.make_node("ReorderInput", ["x"], ["y"], "culprit", domain="com.microsoft.nchwc")
    b.model("optimized_before", model([tuned], [x], [val("y", F, None)], imports=[h.make_opsetid("", 17), h.make_opsetid("com.microsoft.nchwc", 1)]),
            3, "use the model as it was exported, before optimization", "any")


def loops(b):
    x = val("x")
    n, go = const("n", np.int64(3)), const("go", np.bool_(True))
    it, cin, v = val("i", I, ()), val("ci", BOOL, ()), val("v")
    keep = h.make_node("Identity", ["ci"], ["co"])
    step = h.make_node("Add", ["v", "v"], ["w"], "inner")
    co, w = val("co", BOOL, ()), val("w")

    def case(name, loop_body, inputs=("n", "go", "x"), outputs=("y",), code=4, level="graph", inits=(n, go)):
        attrs = {"body": loop_body} if loop_body is not None else {}
        node = h.make_node("Loop", list(inputs), list(outputs), "culprit", **attrs)
        b.model("loop_" + name, model([node], [x], [val(o, F, None) for o in outputs], list(inits)), code, "culprit", level)
    case("no_body", None)
    case("body_is_int", 7)
    case("body_no_inputs", body([keep, step], [], [co, w]))
    case("body_too_few_inputs", body([keep, step], [it, cin], [co, w]))
    case("body_too_many_inputs", body([keep, step], [it, cin, v, val("extra")], [co, w]))
    case("body_too_few_results", body([keep, step], [it, cin, v], [co]))
    case("body_no_results", body([keep, step], [it, cin, v], []))
    case("too_many_outputs", body([keep, step], [it, cin, v], [co, w]), outputs=("y", "z", "q"))
    case("condition_float", body([h.make_node("Cast", ["ci"], ["co"], to=1), step], [it, cin, v], [val("co", F, ()), w]))
    case("state_changes_type", body([keep, h.make_node("Cast", ["v"], ["w"], to=7)], [it, cin, v], [co, val("w", I)]), code=(3, 4))
    case("trip_count_float", body([keep, step], [it, cin, v], [co, w]), inits=(const("n", np.float32(3)), go))
    case("trip_count_vector", body([keep, step], [it, cin, v], [co, w]), inits=(const("n", np.array([1, 2, 3])), go))
    negative = body([keep, step], [it, cin, v], [co, w])
    case("trip_count_negative", negative, inits=(const("n", np.int64(-5)), go), level="any")
    grow = body([keep, h.make_node("Concat", ["v", "v"], ["w"], "inner", axis=0)], [it, cin, val("v", F, None)],
                [co, val("w", F, None)])
    case("doubles_70_times", grow, inits=(const("n", np.int64(70)), go), code=(3, 4, 5))
    collect = body([keep, h.make_node("Identity", ["v"], ["w"]), h.make_node("Identity", ["v"], ["s"])], [it, cin, v],
                   [co, w, val("s")])
    case("collects_forever", collect, outputs=("y", "all"), inits=(const("n", np.int64(1 << 60)), go), code=(3, 4, 5))


def scans(b):
    x = val("x", F, (4, 2))
    elem = val("e", F, (2,))
    good = body([h.make_node("Relu", ["e"], ["s"])], [elem], [val("s", F, (2,))])

    def case(name, code=4, inputs=("x",), outputs=("y",), **attrs):
        node = h.make_node("Scan", list(inputs), list(outputs), "culprit", **attrs)
        b.model("scan_" + name, model([node], [x, val("z", F, (5, 2))], [val(o, F, None) for o in outputs]), code,
                "culprit", "graph")
    case("no_body", num_scan_inputs=1)
    case("no_count", body=good)
    case("count_zero", body=good, num_scan_inputs=0)
    case("count_negative", body=good, num_scan_inputs=-1)
    case("count_too_big", body=good, num_scan_inputs=9)
    case("axis_out_of_range", body=good, num_scan_inputs=1, scan_input_axes=[3])
    case("axes_too_many", body=good, num_scan_inputs=1, scan_input_axes=[0, 0])
    case("direction", body=good, num_scan_inputs=1, scan_input_directions=[5])
    case("output_axis", body=good, num_scan_inputs=1, scan_output_axes=[-4])
    case("too_many_outputs", body=good, num_scan_inputs=1, outputs=("y", "q"))
    pair = body([h.make_node("Add", ["e", "f"], ["s"], "inner")], [elem, val("f", F, (2,))], [val("s", F, (2,))])
    case("lengths_differ", body=pair, num_scan_inputs=2, inputs=("x", "z"))
    case("body_arity", body=pair, num_scan_inputs=1)


def functions(b):
    dom, imports = "own", [h.make_opsetid("", 17), h.make_opsetid("own", 1)]
    x, y = [val("x")], [val("y", F, None)]

    def call(name, source="x", out="y", label="culprit"):
        return h.make_node(name, [source] if isinstance(source, str) else source, [out], label, domain=dom)

    def fn(name, nodes, ins=("a",), outs=("z",), attrs=()):
        return h.make_function(dom, name, list(ins), list(outs), nodes, imports, list(attrs))

    def case(name, nodes, fns, code=4, text=None, level="graph"):
        b.model("function_" + name, model(nodes, x, y, imports=list(imports), functions=fns), code, text, level)
    case("calls_itself", [call("f")], [fn("f", [call("f", "a", "z")])], code=(3, 4))
    case("mutual", [call("f")], [fn("f", [call("g", "a", "z")]), fn("g", [call("f", "a", "z")])], code=(3, 4))
    case("absent", [call("f")], [], code=(3, 4), text="culprit")
    case("twice", [call("f")], [fn("f", [relu("a", "z")]), fn("f", [relu("a", "z")])], level="any")
    case("too_many_inputs", [call("f", ["x", "x"])], [fn("f", [relu("a", "z")])], text="culprit")
    case("result_undefined", [call("f")], [fn("f", [relu("a", "q")])])
    case("input_undefined", [call("f")], [fn("f", [relu("nowhere", "z", "inner")])])
    case("unknown_inside", [call("f")], [fn("f", [h.make_node("Mystery", ["a"], ["z"], "inner")])], code=3, text="Mystery")
    case("sees_caller", [call("f")], [fn("f", [h.make_node("Add", ["a", "x"], ["z"], "inner")])])
    attr = h.make_node("Softmax", ["a"], ["z"], "inner")
    ref = attr.attribute.add(name="axis", ref_attr_name="axis")
    ref.type = 2
    case("attribute_not_given", [call("f")], [fn("f", [attr], attrs=["axis"])], level="any")
    levels = [fn("f0", [relu("a", "z")])]
    for k in range(1, 48):
        levels.append(fn(f"f{k}", [call(f"f{k - 1}", "a", "b", "one"), call(f"f{k - 1}", "b", "z", "two")]))
    case("doubles_48_times", [call("f47")], levels, code=(3, 4, 5))
    deep = [fn("d0", [relu("a", "z")])] + [fn(f"d{k}", [call(f"d{k - 1}", "a", "z", "down")]) for k in range(1, 3000)]
    case("chain_3000", [call("d2999")], deep, code=3)
    b.op("sequence_of_nothing", "SequenceAt", {"x": (F, (2, 3))}, consts={"i": np.int64(0)}, code=(3, 4))
    b.model("optional_unset", one("OptionalGetElement", {"x": (F, (2, 3))}), level="any")


def cases(b):
    for part in (branches, causes, loops, scans, functions):
        part(b)

"""Writes models in the style of real exporters, with inputs and the results of ONNX Runtime.

mkhabits.py OUT writes OUT/NAME/model.onnx and the files it refers to, OUT/NAME/{inputs,expected}.npz, OUT/cases.json.
Runs with the Python of build/venv.

Each case is a function named after the habit.
It returns a model, or a model and further demands:
`judge` False: ONNX Runtime refuses the file, and `expected` has the outputs.
`folds` True: the passes must leave no integer operator.
`warns`: text of each expected warning; absent: any.
"""
import json
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

import oracle

F, I, B = T.FLOAT, T.INT64, T.BOOL
X = np.array([[0.5, -1.25, 2.0], [3.5, -0.125, 1.0]], np.float32)
CASES = []


def case(fn):
    CASES.append(fn)
    return fn


def val(name, kind=F, shape=(2, 3)):
    return h.make_tensor_value_info(name, kind, shape)


def const(name, a):
    return numpy_helper.from_array(np.asarray(a), name)


def node(op, inputs, outputs, name="", **attrs):
    return h.make_node(op, inputs.split(), outputs.split(), name, **attrs)


def model(nodes, inputs=None, outputs=None, inits=(), imports=None, functions=(), sparse=(), ir=8):
    g = h.make_graph(list(nodes), "g", [val("x")] if inputs is None else inputs, [val("y", F, None)] if outputs is None else outputs,
                     list(inits), sparse_initializer=list(sparse))
    return h.make_model(g, ir_version=ir, opset_imports=[h.make_opsetid("", 17)] if imports is None else imports,
                        functions=list(functions))


# ---- weights ----

@case
def constant_forms():
    """A Constant with each of its value attributes."""
    values = {"value": const("t", X[0]), "value_float": 1.5, "value_floats": [1.0, 2.0, 3.0], "value_int": 2, "value_ints": [1, 2, 3]}
    nodes, total = [], "x"
    for k, (name, v) in enumerate(values.items()):
        nodes += [node("Constant", "", f"c{k}", **{name: v}), node("Cast", f"c{k}", f"f{k}", to=F), node("Add", f"{total} f{k}", f"s{k}")]
        total = f"s{k}"
    return model([*nodes, node("Identity", total, "y")])


@case
def constant_sparse():
    s = h.make_sparse_tensor(const("v", np.array([5, 7], np.float32)), const("i", np.array([1, 5])), [2, 3])
    return model([node("Constant", "", "c", sparse_value=s), node("Add", "x c", "y")])


@case
def constant_strings_unused():
    return model([h.make_node("Constant", [], ["c"], value_strings=["a", "b"]), h.make_node("Constant", [], ["d"], value_string="c"),
                  node("Relu", "x", "y")])


@case
def initializer_types():
    """Weights of many types, in typed and in raw fields."""
    nodes, inits, total = [], [], "x"
    for k, kind in enumerate((T.DOUBLE, T.FLOAT16, T.INT8, T.UINT8, T.INT16, T.UINT16, T.INT32, T.UINT32, T.INT64, T.UINT64, T.BOOL)):
        a = np.array([1, 0, 1], h.tensor_dtype_to_np_dtype(kind))
        inits += [const(f"r{k}", a), h.make_tensor(f"t{k}", kind, [3], a.tolist())]
        for name in (f"r{k}", f"t{k}"):
            nodes += [node("Cast", name, name + "f", to=F), node("Add", f"{total} {name}f", name + "s")]
            total = name + "s"
    return model([*nodes, node("Identity", total, "y")], inits=inits)


@case
def initializer_is_input():
    return model([node("MatMul", "x w", "m"), node("Add", "m b", "y")], [val("x"), val("w", F, (3, 2)), val("b", F, (2,))],
                 inits=[const("w", X.reshape(3, 2)), const("b", X[0, :2])], ir=3)


@case
def initializer_sparse():
    flat = h.make_sparse_tensor(const("w", np.array([5, 7], np.float32)), const("i", np.array([1, 5])), [2, 3])
    return model([node("Mul", "x w", "y")], sparse=[flat])


@case
def initializer_scalar_and_empty():
    return model([node("Concat", "x e", "c", axis=0), node("Mul", "c s", "y")],
                 inits=[const("s", np.float32(3)), const("e", np.zeros((0, 3), np.float32))])


@case
def external_data():
    rng = np.random.default_rng(5)
    m = model([node("MatMul", "x w", "m"), node("Add", "m b", "y")],
              inits=[const("w", rng.standard_normal((3, 50)).astype(np.float32)), const("b", rng.standard_normal(50).astype(np.float32))])
    return m, {"external": "one"}


@case
def external_data_many_files():
    return external_data()[0], {"external": "many"}


# ---- functions ----

def fn(name, inputs, outputs, nodes, attrs=(), defaults=(), overload=""):
    f = h.make_function("own", name, inputs.split(), outputs.split(), nodes, [h.make_opsetid("", 17), h.make_opsetid("own", 1)],
                        list(attrs), list(defaults))
    if overload:
        f.overload = overload
    return f


def own(nodes, functions, **more):
    return model(nodes, imports=[h.make_opsetid("", 17), h.make_opsetid("own", 1)], functions=functions, **more)


def call(name, inputs, outputs, overload="", **attrs):
    n = h.make_node(name, inputs.split(), outputs.split(), domain="own", **attrs)
    if overload:
        n.overload = overload
    return n


def ref(n, name, kind, to):
    n.attribute.append(onnx.AttributeProto(name=name, type=kind, ref_attr_name=to))
    return n


@case
def function_plain():
    f = fn("twice", "a", "b", [node("Add", "a a", "b")])
    return own([call("twice", "x", "t"), call("twice", "t", "y")], [f])


@case
def function_nested_attributes():
    """An attribute passed through two functions, one with a default that is used and one with a default that is not."""
    inner = fn("leaky", "a", "b", [ref(node("LeakyRelu", "a", "b"), "alpha", 1, "slope")], defaults=[h.make_attribute("slope", 0.25)])
    outer = fn("outer", "a", "b c", [ref(call("leaky", "a", "b"), "slope", 1, "s"), call("leaky", "a", "c")], ["s"])
    return own([call("outer", "x", "p q", s=0.75), node("Add", "p q", "y")], [inner, outer])


@case
def function_constant_reference():
    f = fn("scale", "a", "b", [ref(node("Constant", "", "k"), "value_float", 1, "by"), node("Mul", "a k", "b")], ["by"])
    return own([call("scale", "x", "t", by=3.0), call("scale", "t", "y", by=-0.5)], [f])


@case
def function_optional_input():
    f = fn("clip", "a lo hi", "b", [node("Clip", "a lo hi", "b")])
    return own([h.make_node("clip", ["x", "", "k"], ["y"], domain="own")], [f], inits=[const("k", np.float32(1))])


@case
def function_unused_output():
    f = fn("both", "a", "p q", [node("Relu", "a", "p"), node("Neg", "a", "q")])
    return own([h.make_node("both", ["x"], ["", "y"], domain="own")], [f])


@case
def function_overloads():
    fns = [fn("f", "a", "b", [node("Neg", "a", "b")], overload="neg"), fn("f", "a", "b", [node("Abs", "a", "b")], overload="abs")]
    m = own([call("f", "x", "n", "neg"), call("f", "x", "a", "abs"), node("Mul", "n a", "y")], fns, ir=10)
    return m, {"judge": False, "expected": {"y": -X * np.abs(X)}}


@case
def function_with_branch():
    """A sub-graph inside a function reads values of the function."""
    yes = h.make_graph([node("Add", "a k", "p")], "yes", [], [val("p", F, None)])
    no = h.make_graph([node("Sub", "a k", "q")], "no", [], [val("q", F, None)])
    f = fn("pick", "a c", "b", [node("Constant", "", "k", value_float=2.0), h.make_node("If", ["c"], ["b"], then_branch=yes, else_branch=no)])
    return own([node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s z", "c"), call("pick", "x c", "y")], [f],
               inits=[const("z", np.float32(0))])


@case
def function_same_inner_names():
    f = fn("f", "x", "y", [node("Relu", "x", "t"), node("Exp", "t", "y")])
    g = fn("g", "y", "x", [call("f", "y", "t"), node("Log", "t", "x")])
    return own([call("g", "x", "t"), node("Add", "t x", "y")], [f, g])


# ---- sub-graphs ----

@case
def branch_captures():
    """Branches read an outer value, an outer weight, an outer input, and a weight inside the branch."""
    yes = h.make_graph([node("MatMul", "t w", "p0"), node("Add", "p0 own", "p")], "yes", [], [val("p", F, None)], [const("own", X[0, :2])])
    no = h.make_graph([node("MatMul", "x w", "q")], "no", [], [val("q", F, None)])
    return model([node("Relu", "x", "t"), h.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)], [val("x"), val("c", B, ())],
                 inits=[const("w", X.reshape(3, 2))]), {"inputs": {"c": np.bool_(True)}}


@case
def branch_captures_two_levels():
    deep = h.make_graph([node("Mul", "t x", "d")], "deep", [], [val("d", F, None)])
    flat = h.make_graph([node("Identity", "t", "e")], "flat", [], [val("e", F, None)])
    yes = h.make_graph([h.make_node("If", ["c"], ["p"], then_branch=deep, else_branch=flat)], "yes", [], [val("p", F, None)])
    no = h.make_graph([node("Neg", "t", "q")], "no", [], [val("q", F, None)])
    return model([node("Exp", "x", "t"), h.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)], [val("x"), val("c", B, ())]), \
        {"inputs": {"c": np.bool_(True)}}


@case
def branch_gives_outer_value():
    """A branch without nodes: its result is an outer value."""
    yes = h.make_graph([], "yes", [], [val("t", F, None)])
    no = h.make_graph([node("Neg", "t", "q")], "no", [], [val("q", F, None)])
    m = model([node("Relu", "x", "t"), h.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)], [val("x"), val("c", B, ())])
    return m, {"inputs": {"c": np.bool_(True)}, "judge": False, "expected": {"y": np.maximum(X, 0)}}


@case
def loop_captures():
    body = h.make_graph([node("Identity", "ci", "co"), node("Mul", "v w", "p"), node("Add", "p x", "vo"), node("ReduceSum", "vo", "s", keepdims=0)],
                        "body", [val("i", I, ()), val("ci", B, ()), val("v", F, None)],
                        [val("co", B, ()), val("vo", F, None), val("s", F, None)])
    return model([h.make_node("Loop", ["n", "go", "x"], ["y", "all"], body=body)], outputs=[val("y", F, None), val("all", F, None)],
                 inits=[const("n", np.int64(4)), const("go", np.bool_(True)), const("w", np.float32(0.5))])


@case
def scan_sums():
    body = h.make_graph([node("Add", "s e", "so"), node("Mul", "so w", "o")], "body", [val("s", F, (3,)), val("e", F, (3,))],
                        [val("so", F, (3,)), val("o", F, (3,))])
    return model([h.make_node("Scan", ["z", "x"], ["last", "y"], body=body, num_scan_inputs=1)], outputs=[val("last", F, None), val("y", F, None)],
                 inits=[const("z", np.zeros(3, np.float32)), const("w", np.float32(2))])


# ---- names ----

@case
def unnamed_nodes():
    return model([node("Relu", "x", "a"), node("Relu", "a", "b"), node("Neg", "b", "y")])


@case
def odd_names():
    a, b, c = "a/b:0 (\"quoted\")", "été\u4e2d\U0001f600", "*/ int main(){} /*"
    return model([h.make_node("Relu", ["x"], [a], a), h.make_node("Exp", [a], [b], "%s %n"), h.make_node("Neg", [b], [c], "\\\n"),
                  h.make_node("Neg", [c], ["y"], " ")])


@case
def names_of_c():
    """Inputs and outputs named like C keywords and functions of the C library."""
    return model([node("Add", "int main", "exp"), node("Mul", "exp exp", "return")], [val("int"), val("main")],
                 [val("exp", F, None), val("return", F, None)]), {"inputs": {"int": X, "main": X + 1}}


@case
def same_name_for_node_and_value():
    return model([node("Relu", "x", "a", "x"), node("Neg", "a", "y", "a")])


# ---- declarations ----

@case
def outputs_without_shape():
    return model([node("Relu", "x", "y")], outputs=[onnx.ValueInfoProto(name="y", type=onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=F)))])


@case
def outputs_without_type():
    m = model([node("Relu", "x", "y")], outputs=[onnx.ValueInfoProto(name="y")])
    return m, {"judge": False, "expected": {"y": np.maximum(X, 0)}}


@case
def opset_unused_domains():
    return model([node("Relu", "x", "y")], imports=[h.make_opsetid("com.example.unused", 7), h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 3)])


@case
def opset_duplicated():
    m = model([node("Relu", "x", "y")], imports=[h.make_opsetid("", 17), h.make_opsetid("ai.onnx", 17), h.make_opsetid("", 17)])
    return m, {"judge": False, "expected": {"y": np.maximum(X, 0)}}


@case
def opset_missing():
    m = model([node("Relu", "x", "y")], imports=[])
    return m, {"judge": False, "expected": {"y": np.maximum(X, 0)}, "codes": [0, 3, 4]}


@case
def opset_domain_spelled_out():
    m = model([h.make_node("Relu", ["x"], ["y"], domain="ai.onnx")], imports=[h.make_opsetid("ai.onnx", 17)])
    return m, {"judge": False, "expected": {"y": np.maximum(X, 0)}}


@case
def symbolic_batch():
    return model([node("Relu", "x", "y")], [val("x", F, ("N", 3))], [val("y", F, ("N", 3))])


@case
def value_info_lies_about_names():
    """Declarations of values that do not exist."""
    m = model([node("Relu", "x", "y")])
    m.graph.value_info.append(val("ghost", F, (7,)))
    return m


# ---- shapes ----

@case
def zero_size():
    return model([node("Relu", "x", "a"), node("Concat", "a a", "b", axis=0), node("MatMul", "b w", "y"), node("ReduceSum", "b", "s")],
                 [val("x", F, (0, 3))], [val("y", F, None), val("s", F, None)], [const("w", np.ones((3, 2), np.float32))]), \
        {"inputs": {"x": np.zeros((0, 3), np.float32)}}


@case
def zero_size_inner():
    """A product with an empty axis: the sums are zero."""
    return model([node("Slice", "x z z one", "e"), node("Transpose", "e", "t", perm=[1, 0]), node("MatMul", "e t", "y")],
                 inits=[const("z", np.array([0])), const("one", np.array([1]))])


@case
def identity_and_cast_chains():
    nodes, last = [], "x"
    for k in range(300):
        nodes.append(node("Identity", last, f"i{k}") if k % 3 else node("Cast", last, f"i{k}", to=F))
        last = f"i{k}"
    return model([*nodes, node("Cast", last, "d", to=T.DOUBLE), node("Cast", "d", "f", to=F), node("Cast", "f", "h", to=T.FLOAT16),
                  node("Cast", "h", "y", to=F)])


@case
def shape_chain():
    """The nodes that torch writes for x.view(x.size(0), -1) and similar calls."""
    nodes = [node("Shape", "x", "s"), node("Constant", "", "zero", value_int=0), node("Gather", "s zero", "n", axis=0),
             node("Constant", "", "axes", value_ints=[0]), node("Unsqueeze", "n axes", "nu"), node("Constant", "", "minus", value_ints=[-1]),
             node("Concat", "nu minus", "to", axis=0), node("Reshape", "x to", "y")]
    return model(nodes, [val("x", F, (2, 3, 4))]), {"folds": True, "inputs": {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4)}}


@case
def shape_chain_long():
    """Products, quotients, slices, casts, comparisons and Where on extents."""
    nodes = [node("Shape", "x", "s"), node("Slice", "s one two", "w"), node("Cast", "w", "wf", to=F), node("Mul", "wf half", "wh"),
             node("Floor", "wh", "wfl"), node("Cast", "wfl", "wi", to=I), node("Div", "w two", "wd"), node("Equal", "wi wd", "eq"),
             node("Where", "eq wi w", "k"), node("Shape", "k", "ks"), node("ConstantOfShape", "ks", "zeros", value=const("v", np.array([2]))),
             node("Concat", "zeros k", "pair", axis=0), node("ReduceProd", "s", "all", keepdims=1), node("ReduceProd", "pair", "some", keepdims=1),
             node("Div", "all some", "rest"), node("Concat", "zeros k rest", "to", axis=0), node("Reshape", "x to", "y")]
    return model(nodes, [val("x", F, (2, 6, 4))], inits=[const("one", np.array([1])), const("two", np.array([2])), const("half", np.float32(0.5))]), \
        {"folds": True, "inputs": {"x": np.arange(48, dtype=np.float32).reshape(2, 6, 4)}}


@case
def shape_expand_like():
    nodes = [node("Shape", "x", "s"), node("Expand", "one s", "e"), node("Add", "x e", "a"), node("Size", "x", "n"), node("Cast", "n", "nf", to=F),
             node("Div", "a nf", "y")]
    return model(nodes, inits=[const("one", np.ones((1,), np.float32))]), {"folds": True}


@case
def shape_range_position():
    """Positions 0..n-1, as in embeddings."""
    nodes = [node("Shape", "x", "s"), node("Gather", "s one", "n", axis=0), node("Range", "zero n one", "r"), node("Gather", "w r", "p", axis=0),
             node("Add", "x p", "y")]
    return model(nodes, inits=[const("one", np.int64(1)), const("zero", np.int64(0)), const("w", X.reshape(-1))]), {"folds": True}


# ---- optional ----

@case
def optional_inputs_empty():
    return model([h.make_node("Clip", ["x", "", "hi"], ["a"]), h.make_node("Clip", ["a", "lo"], ["b"]), h.make_node("Clip", ["b", "", ""], ["y"])],
                 inits=[const("hi", np.float32(2)), const("lo", np.float32(-0.5))])


@case
def optional_outputs_empty():
    nodes = [h.make_node("TopK", ["x", "k"], ["v", "i"]), h.make_node("Cast", ["i"], ["y"], to=F), h.make_node("Dropout", ["x"], ["d", ""])]
    return model([*nodes, node("Add", "d d", "z")], outputs=[val("y", F, None), val("z", F, None)], inits=[const("k", np.array([2]))])


@case
def optional_lstm_gaps():
    rng = np.random.default_rng(3)
    w, r = rng.standard_normal((1, 8, 3)).astype(np.float32), rng.standard_normal((1, 8, 2)).astype(np.float32)
    h0 = rng.standard_normal((1, 1, 2)).astype(np.float32)
    return model([h.make_node("LSTM", ["x", "w", "r", "", "", "h0"], ["", "y"], hidden_size=2)], [val("x", F, (2, 1, 3))],
                 inits=[const("w", w), const("r", r), const("h0", h0)]), {"inputs": {"x": X.reshape(2, 1, 3)}}


# ---- outputs ----

@case
def output_used_inside():
    return model([node("Relu", "x", "a"), node("Neg", "a", "y")], outputs=[val("a", F, None), val("y", F, None)])


@case
def output_is_constant():
    return model([node("Relu", "x", "y"), node("Constant", "", "c", value=const("c", X))], outputs=[val("y", F, None), val("c", F, None)])


@case
def output_is_initializer():
    return model([node("Relu", "x", "y")], outputs=[val("y", F, None), val("w", F, None)], inits=[const("w", X)])


@case
def output_is_input():
    return model([node("Relu", "x", "y")], outputs=[val("y", F, None), val("x")])


@case
def output_is_identity_of_input():
    return model([node("Identity", "x", "y"), node("Identity", "y", "z")], outputs=[val("y", F, None), val("z", F, None)])


@case
def output_views_of_one_value():
    return model([node("Relu", "x", "a"), node("Reshape", "a s", "y"), node("Flatten", "a", "z", axis=0), node("Transpose", "a", "t")],
                 outputs=[val(n, F, None) for n in ("a", "y", "z", "t")], inits=[const("s", np.array([3, 2]))])


@case
def output_twice():
    m = model([node("Relu", "x", "y")], outputs=[val("y", F, None), val("y", F, None)])
    return m, {"judge": False, "codes": [0, 4]}


@case
def output_equal_nodes():
    """Two outputs with the same computation: no pass may drop one of them."""
    return model([node("Relu", "x", "y"), node("Relu", "x", "z")], outputs=[val("y", F, None), val("z", F, None)])


@case
def inputs_unused():
    return model([node("Relu", "x", "y")], [val("x"), val("spare", F, (4,)), val("other", I, ())]), \
        {"inputs": {"spare": np.zeros(4, np.float32), "other": np.int64(1)}}


@case
def nodes_unused():
    return model([node("Relu", "x", "y"), node("Exp", "x", "dead"), node("Gather", "x far", "dead2", axis=0)], inits=[const("far", np.array([0, 1]))])


@case
def doc_strings_and_metadata():
    m = model([node("Relu", "x", "y")])
    m.doc_string, m.graph.doc_string, m.graph.node[0].doc_string = "*/", "\n" * 100, "\x01\x02"
    h.set_model_props(m, {"key": "value", "": "", "author": "\U0001f600"})
    return m


@case
def output_of_another_shape():
    """The declared shape is wrong; the computed one counts."""
    outputs = [val("y", F, (3, 2)), val("z", F, (2,)), val("w", F, ("n", 3)), val("v", F, (2, 3))]
    return model([node("Relu", "x", "y"), node("Neg", "x", "z"), node("Exp", "x", "w"), node("Abs", "x", "v")], outputs=outputs), {
        "warns": ["output 'y' is declared as [3,2] but computed as [2,3]", "output 'z' is declared as [2] but computed as [2,3]"]}


@case
def attributes_nobody_knows():
    """Marks that exporters leave; each is reported once."""
    nodes = [node("Relu", "x", "a", "first", mood=1, tint="red"), node("Relu", "a", "b", "second", mood=2),
             node("Conv", "c k", "d", mood=3, kernel_shape=[1]), node("Reshape", "d s", "y")]
    nodes.insert(2, node("Unsqueeze", "b o", "c"))
    return model(nodes, inits=[const("k", np.full((3, 3, 1), 0.5, np.float32)), const("s", [2, 3]), const("o", [2])]), {
        "judge": False, "warns": ["node 0 'first' (Relu): attribute 'mood' is not known and has no effect",
                                  "attribute 'tint' is not known", "node 3 (Conv): attribute 'mood' is not known"]}


def main():
    out = sys.argv[1]
    shutil.rmtree(out, ignore_errors=True)
    cases = []
    for build in CASES:
        made = build()
        m, more = made if isinstance(made, tuple) else (made, {})
        folder = os.path.join(out, build.__name__)
        os.makedirs(folder)
        path = os.path.join(folder, "model.onnx")
        raw = m.SerializeToString()
        if "external" in more:
            onnx.save_model(m, path, save_as_external_data=True, all_tensors_to_one_file=more["external"] == "one", location="w.bin"
                            if more["external"] == "one" else None, size_threshold=0)
        else:
            onnx.save(m, path)
        given = {"x": X} if any(v.name == "x" for v in m.graph.input) else {}
        given.update({k: np.asarray(v) for k, v in more.get("inputs", {}).items()})
        if more.get("judge", True):
            session = oracle.session(raw)
            expected = dict(zip([o.name for o in session.get_outputs()], session.run(None, given)))
        else:
            expected = more.get("expected", {})
        np.savez(os.path.join(folder, "inputs.npz"), **given)
        np.savez(os.path.join(folder, "expected.npz"), **expected)
        cases.append({"name": build.__name__, "folder": folder, "codes": more.get("codes", [0]), "folds": more.get("folds", False),
                      "warns": more.get("warns")})
    with open(os.path.join(out, "cases.json"), "w", encoding="ascii") as f:
        json.dump(cases, f, indent=1)
    print(len(cases), "cases")


main()

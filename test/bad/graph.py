"""Well-formed messages whose graph makes no sense: names, order, versions, operators, attributes, types."""
from onnx import AttributeProto

from .kit import F, I, T, const, floats, h, model, one, relu, val


def wiring(b):
    x, y = [val("x")], [val("y")]
    add = lambda a, c, out, name="culprit": h.make_node("Add", [a, c], [out], name)  # noqa: E731
    for name, nodes in {
        "cycle_self": [add("x", "y", "y")],
        "cycle_two": [add("x", "b", "a"), add("a", "x", "b", "second"), relu("b", "y")],
        "cycle_three": [add("x", "c", "a"), relu("a", "b"), relu("b", "c"), relu("c", "y")],
        "missing_input": [add("x", "nowhere", "y")],
        "missing_both": [add("here", "there", "y")],
        "duplicate_value": [relu("x", "y", "first"), relu("x", "y", "culprit")],
        "duplicate_in_node": [h.make_node("Split", ["x"], ["y", "y"], "culprit", axis=1)],
        "defines_input": [relu("x", "x", "culprit"), relu("x", "y")],
    }.items():
        b.model(name, model(nodes, x, y), text="culprit", level="graph")
    for name, m, text in (
        ("missing_output", model([relu("x", "z")], x, y), "y"),
        ("no_nodes_no_output", model([], x, y), "y"),
        ("duplicate_input", model([relu()], [val("x"), val("x")], y), "x"),
        ("duplicate_initializer", model([h.make_node("Add", ["x", "w"], ["y"])], x, y,
                                        [const("w", floats(3)), const("w", floats(2, 3))]), "w"),
        ("defines_initializer", model([relu("x", "w"), relu("w", "y")], x, y, [const("w", floats(2, 3))]), "w"),
    ):
        b.model(name, m, text=text, level="graph")
    b.model("unnamed_initializer", model([relu()], x, y, [const("", floats(3))]), level="any")
    b.model("not_sorted", model([relu("a", "y"), relu("x", "a")], x, y), level="any")
    b.model("duplicate_output", model([relu()], x, y + y), level="any")
    b.model("same_node_names", model([relu("x", "a"), relu("a", "y")], x, y), level="any")
    b.model("no_inputs_no_outputs", model([], [], []), level="any")
    b.model("no_opset", model([relu()], x, y, imports=[]), level="any")
    b.model("input_is_output", model([], x, [val("x")]), level="any")
    long = [relu("x" if k == 0 else f"v{k}", f"v{k + 1}" if k < 19999 else "y", f"n{k}") for k in range(20000)]
    b.model("chain_20000", model(long, x, y), level="any")


def versions(b):
    x, y = [val("x")], [val("y")]
    for opset, code in ((99, 3), (29, 3), (1 << 40, (3, 4)), (0, 4), (-1, 4), (-(1 << 62), 4)):
        b.model(f"opset_{opset}", model([relu()], x, y, opset=opset), code=code, text="opset", level="graph")
    for ir, code in ((0, 4), (1, (3, 4)), (99, (3, 4)), (-5, 4), (1 << 50, (3, 4))):
        b.model(f"ir_{ir}", model([relu()], x, y, ir=ir), code=code, level="graph")
    twice = [h.make_opsetid("", 13), h.make_opsetid("ai.onnx", 17)]
    b.model("opsets_conflict", model([relu()], x, y, imports=twice), text="opset 13 and opset 17", level="graph")
    fn = h.make_function("own", "F", ["x"], ["y"], [relu()], twice)
    calls = [h.make_node("F", ["x"], ["y"], "culprit", domain="own")]
    imports = [h.make_opsetid("", 17), h.make_opsetid("own", 1)]
    b.model("opsets_conflict_in_function", model(calls, x, y, functions=[fn], imports=imports), text="opset 13 and opset 17",
            level="graph")
    b.op("unknown_op", "Frobnicate", {"x": (F, (2, 3))}, code=3, text="Frobnicate")
    b.op("unknown_domain", "Relu", {"x": (F, (2, 3))}, code=3, text="example.org", domain="example.org")
    m = one("Gadget", {"x": (F, (2, 3))}, domain="example.org")
    del m.opset_import[1]
    b.model("import_missing", m, code=(3, 4), text="culprit", level="graph")
    b.op("too_new_op", "Gelu", {"x": (F, (2, 3))}, code=(3, 4), opset=9)
    b.op("no_op_type", "", {"x": (F, (2, 3))}, code=(3, 4))
    b.op("case_matters", "relu", {"x": (F, (2, 3))}, code=3)
    two = [h.make_node("Nope", ["x"], ["a"], "culprit1"), h.make_node("Nada", ["a"], ["y"], "culprit2")]
    b.model("two_unknown", model(two, x, y), code=3, text="Nope", level="graph")
    b.model("two_unknown_all_reported", model(two, x, y), code=3, text="Nada", level="graph")


def arity(b):
    one_in, x = {"x": (F, (2, 3))}, (F, (2, 3))
    b.op("relu_two_inputs", "Relu", {"x": x, "z": x})
    b.op("add_one_input", "Add", one_in)
    b.op("add_no_input", "Add", {})
    b.op("relu_two_outputs", "Relu", one_in, ["y", "z"])
    b.op("where_two_inputs", "Where", {"c": (T.BOOL, (2, 3)), "x": x})
    b.op("conv_no_weight", "Conv", {"x": (F, (1, 2, 5, 5))})
    b.op("concat_nothing", "Concat", {}, axis=0)
    b.op("matmul_three", "MatMul", {"x": x, "z": x, "w": x})
    m = one("Clip", one_in)
    m.graph.node[0].input[0] = ""
    b.model("required_input_empty", m, text="culprit", level="graph")
    m = one("Relu", one_in)
    del m.graph.node[0].output[:]
    b.model("node_without_output", m, level="graph")


def attributes(b):
    x4, w = {"x": (F, (1, 2, 5, 5))}, {"w": floats(3, 2, 3, 3)}
    b.op("attr_float_for_ints", "Conv", x4, consts=w, kernel_shape=1.5)
    b.op("attr_string_for_int", "Concat", {"x": (F, (2, 3))}, axis="zero")
    b.op("attr_ints_for_int", "Softmax", {"x": (F, (2, 3))}, axis=[1, 2])
    b.op("attr_int_for_string", "Conv", x4, consts=w, auto_pad=3)
    b.op("attr_tensor_for_int", "Flatten", {"x": (F, (2, 3))}, axis=const("t", floats(2)))
    b.op("cast_without_to", "Cast", {"x": (F, (2, 3))})
    b.op("cast_to_999", "Cast", {"x": (F, (2, 3))}, to=999, code=(3, 4))
    b.op("cast_to_0", "Cast", {"x": (F, (2, 3))}, to=0, code=(3, 4))
    b.op("concat_without_axis", "Concat", {"x": (F, (2, 3))})
    b.op("constant_without_value", "Constant", {})
    b.op("constant_two_values", "Constant", {}, value_int=1, value_float=2.0)
    m = one("Softmax", {"x": (F, (2, 3))}, axis=1)
    m.graph.node[0].attribute.append(h.make_attribute("axis", 0))
    b.model("attr_twice", m, text="culprit", level="graph")
    m = one("Softmax", {"x": (F, (2, 3))}, axis=1)
    m.graph.node[0].attribute[0].type = AttributeProto.FLOATS
    b.model("attr_type_lies", m, level="any")
    m = one("Softmax", {"x": (F, (2, 3))}, axis=1)
    m.graph.node[0].attribute[0].ref_attr_name = "outer"
    b.model("attr_reference_outside_function", m, code=(3, 4), text="culprit", level="graph")
    m = one("Softmax", {"x": (F, (2, 3))}, axis=1)
    raw = m.SerializeToString().replace(b"\xa0\x01\x02", b"\xa0\x01\x4d")  # AttributeProto.type = 77
    b.raw("attr_type_77", raw, code=(3, 4), level="graph", inputs=["x"])
    b.op("attr_unknown", "Relu", {"x": (F, (2, 3))}, level="any", color=3)
    b.op("attr_int_max", "Softmax", {"x": (F, (2, 3))}, axis=(1 << 63) - 1)
    b.op("attr_int_min", "Softmax", {"x": (F, (2, 3))}, axis=-(1 << 63))


def types(b):
    f, i, s, bo = (F, (2, 3)), (I, (2, 3)), (T.STRING, (2, 3)), (T.BOOL, (2, 3))
    b.op("add_f32_i64", "Add", {"x": f, "z": i})
    b.op("add_strings", "Add", {"x": s, "z": s}, code=(3, 4))
    b.op("not_on_float", "Not", {"x": f})
    b.op("and_on_float", "And", {"x": f, "z": f})
    b.op("where_float_condition", "Where", {"c": f, "x": f, "z": f})
    b.op("gather_float_index", "Gather", {"x": f, "z": f})
    b.op("sqrt_on_string", "Sqrt", {"x": s})
    b.op("relu_on_bool", "Relu", {"x": bo})
    b.op("matmul_mixed", "MatMul", {"x": (F, (2, 3)), "z": (T.DOUBLE, (3, 2))})
    b.op("reshape_float_shape", "Reshape", {"x": f}, consts={"s": floats(2)})
    for name, shape, code in (("negative_dim", (-3, 2), (3, 4)), ("dim_2_62", (1 << 62, 4), (3, 4)),
                              ("product_overflow", (1 << 32, 1 << 32, 1 << 32), (3, 4)),
                              ("dim_int64_min", (-(1 << 63), 1), (3, 4)), ("petabyte", (1 << 30, 1 << 20), (3, 4, 5))):
        b.op("input_" + name, "Relu", {"x": (F, shape)}, code=code, text="x")
    b.model("output_type_differs", model([relu()], [val("x")], [val("y", I)]), level="graph")
    b.model("output_rank_differs", model([relu()], [val("x")], [val("y", F, (2, 3, 1, 1))]), level="any")
    m = model([relu()], [val("x")], [val("y")])
    m.graph.input[0].ClearField("type")
    b.model("input_without_type", m, code=(3, 4), level="graph")


def cases(b):
    for part in (wiring, versions, arity, attributes, types):
        part(b)

"""Operators with state, variables, branches and loops. Runs of a model with state have the same inputs; only the state differs."""
import numpy as np
from tflitefile import NONE, RELU, TANH, Net, Q
from .maths import floats, ints


def svdf(Case, rng):
    batch, size, units, memory = 2, 5, 4, 6
    for rank in (1, 2):
        for act in (NONE, RELU):
            net = Net()
            filters = units * rank
            ins = [net.input("f32", (batch, size)), net.const(floats(rng, (filters, size), -1, 1)), net.const(floats(rng, (filters, memory), -1, 1)),
                   net.const(floats(rng, (units,), -1, 1)), net.variable("f32", (batch, memory * filters))]
            net.result(net.op("SVDF", ins, ["f32"], "SVDF", rank=rank, fused_activation_function=act))
            yield Case(f"svdf_{rank}_{act}_f32", net, [[floats(rng, (batch, size))]] * 8, compiled=rank == 2, state=True)
            net = Net()
            s, w1, w2, state = 0.03, 0.01, 0.0001, 0.0008
            ins = [net.input("i8", (batch, size), Q(s, 4)), net.const(ints(rng, "i8", (filters, size), -127), Q(w1)),
                   net.const(ints(rng, "i16", (filters, memory), -32767), Q(w2)), net.const(ints(rng, "i32", (units,), -9000, 9000), Q(state * w2)),
                   net.variable("i16", (batch, memory * filters), Q(state))]
            net.result(net.op("SVDF", ins, [("i8", Q(0.08, -3))], "SVDF", rank=rank, fused_activation_function=RELU, version=3))
            if act == RELU:
                yield Case(f"svdf_{rank}_i8", net, [[ints(rng, "i8", (batch, size))]] * 8, compiled=rank == 2, state=True)
    net = Net()
    ins = [net.input("f32", (1, 3)), net.const(floats(rng, (2, 3))), net.const(floats(rng, (2, 4))), -1, net.variable("f32", (1, 8))]
    net.result(net.op("SVDF", ins, ["f32"], "SVDF", rank=1))
    yield Case("svdf_no_bias", net, [[floats(rng, (1, 3))]] * 3, state=True)


def lstm(Case, rng):
    batch, steps, size, cells = 2, 4, 3, 5
    for tag, time_major, clip, peephole, coupled, project in (("plain", False, 0.0, False, False, 0), ("time", True, 0.0, False, False, 0), ("clip", False, 0.4, False, False, 0),
                                                              ("peephole", False, 0.0, True, False, 0), ("coupled", False, 0.0, False, True, 0), ("project", True, 0.0, False, False, 4)):
        net = Net()
        units = project or cells
        shape = (steps, batch, size) if time_major else (batch, steps, size)

        def w(*dims):
            return net.const(floats(rng, dims, -0.6, 0.6))
        ins = [net.input("f32", shape)] + [-1 if coupled and i == 0 else w(cells, size) for i in range(4)] + [-1 if coupled and i == 0 else w(cells, units) for i in range(4)]
        ins += [w(cells) if peephole else -1 for _ in range(3)] + [-1 if coupled and i == 0 else w(cells) for i in range(4)]
        ins += [w(project, cells) if project else -1, w(project) if project else -1, net.variable("f32", (batch, units)), net.variable("f32", (batch, cells))]
        ins += [-1] * 4
        net.result(net.op("UNIDIRECTIONAL_SEQUENCE_LSTM", ins, ["f32"], "UnidirectionalSequenceLSTM", fused_activation_function=TANH, cell_clip=clip, time_major=time_major))
        yield Case(f"lstm_{tag}_f32", net, [[floats(rng, shape)]] * 3, compiled=tag == "plain", state=True)
    for tag, time_major in (("plain", False), ("time", True)):
        net = Net()
        shape = (steps, batch, size) if time_major else (batch, steps, size)
        qx, qh, qc = Q(0.02, 5), Q(1 / 128, 3 if time_major else 0), Q(2 ** -12)

        def w8(scale, *dims):
            return net.const(ints(rng, "i8", dims, -127), Q(scale))

        def bias(scale):
            return net.const(ints(rng, "i32", (cells,), -6000, 6000), Q(scale))
        ins = [net.input("i8", shape, qx)] + [w8(0.008 + 0.001 * i, cells, size) for i in range(4)] + [w8(0.006 + 0.001 * i, cells, cells) for i in range(4)] + [-1] * 3
        ins += [bias(0.02 * (0.008 + 0.001 * i)) for i in range(4)] + [-1, -1]
        ins += [net.tensor("i8", (batch, cells), qh, variable=True), net.tensor("i16", (batch, cells), qc, variable=True)] + [-1] * 4
        mids = [net.tensor("i16", (1,), Q(2 ** -12)) for _ in range(4)] + [net.tensor("i8", (1,), qh)]
        net.result(net.op("UNIDIRECTIONAL_SEQUENCE_LSTM", ins, [("i8", qh)], "UnidirectionalSequenceLSTM", fused_activation_function=TANH, time_major=time_major, version=4,
                          intermediates=mids))
        yield Case(f"lstm_{tag}_i8", net, [[ints(rng, "i8", shape)]] * 3, steps=1, share=0.2, compiled=tag == "plain", state=True,
                   why="sigmoid and tanh of the gates are exact here, approximations in fixed point there")


def rnn(Case, rng):
    batch, steps, size, units = 2, 4, 3, 5
    for tag, time_major, act in (("plain", False, TANH), ("time", True, RELU)):
        net = Net()
        shape = (steps, batch, size) if time_major else (batch, steps, size)
        ins = [net.input("f32", shape), net.const(floats(rng, (units, size), -0.5, 0.5)), net.const(floats(rng, (units, units), -0.5, 0.5)), net.const(floats(rng, (units,))),
               net.variable("f32", (batch, units))]
        net.result(net.op("UNIDIRECTIONAL_SEQUENCE_RNN", ins, ["f32"], "SequenceRNN", time_major=time_major, fused_activation_function=act))
        yield Case(f"rnn_{tag}", net, [[floats(rng, shape)]] * 3, state=True)
    net = Net()
    ins = [net.input("f32", (batch, size)), net.const(floats(rng, (units, size), -0.5, 0.5)), net.const(floats(rng, (units, units), -0.5, 0.5)), net.const(floats(rng, (units,))),
           net.variable("f32", (batch, units))]
    net.result(net.op("RNN", ins, ["f32"], "RNN", fused_activation_function=TANH))
    yield Case("rnn_step", net, [[floats(rng, (batch, size))]] * 3, state=True)


def branches(Case, rng):
    net = Net()
    p, x, y = net.input("bool", (1,)), net.input("f32", (2, 3)), net.input("f32", (1, 3))
    subs = []
    for op, options in (("ADD", "Add"), ("MUL", "Mul")):
        subs.append(net.begin(options))
        a, b = net.input("f32", (2, 3)), net.input("f32", (1, 3))
        net.result(net.op(op, [a, b], [("f32", None, (2, 3))], options))
    net.end()
    net.result(net.op("IF", [p, x, y], [("f32", None, (2, 3))], "If", then_subgraph_index=subs[0], else_subgraph_index=subs[1]))
    a, b = floats(rng, (2, 3)), floats(rng, (1, 3))
    yield Case("if", net, [[np.array([True]), a, b], [np.array([False]), a, b]], compiled=True)

    net = Net()
    n, x = net.input("i32", (1,)), net.input("f32", (2, 3))
    cond = net.begin("cond")
    i, v = net.input("i32", (1,)), net.input("f32", (2, 3))
    net.result(net.op("LESS", [i, net.const(np.array([6], np.int32))], [("bool", None, (1,))], "Less"))
    body = net.begin("body")
    i, v = net.input("i32", (1,)), net.input("f32", (2, 3))
    net.result(net.op("ADD", [i, net.const(np.array([1], np.int32))], [("i32", None, (1,))], "Add"))
    net.result(net.op("MUL", [v, net.const(np.array([1.5, 0.5, -1], np.float32))], [("f32", None, (2, 3))], "Mul"))
    net.end()
    net.result(*net.op("WHILE", [n, x], [("i32", None, (1,)), ("f32", None, (2, 3))], "While", cond_subgraph_index=cond, body_subgraph_index=body))
    yield Case("while", net, [[np.array([2], np.int32), a], [np.array([9], np.int32), a]], compiled=True)
    yield listed(Case, rng)


def listed(Case, rng):
    """The loop that the converter makes of a Keras layer like LSTM: rows of x are read, and a list of results has one row replaced, which is joined of three parts."""
    def ints(*a):
        return net.const(np.array(a, np.int32))

    def carried():
        return net.input("i32", (1,)), net.input("f32", (5, 2, 3)), net.input("f32", (2, 3)), net.input("f32", (5, 2, 3))
    net = Net()
    n, x = net.input("i32", (1,)), net.input("f32", (5, 2, 3))
    rows, state = net.const(np.zeros((5, 2, 3), np.float32)), net.const(np.zeros((2, 3), np.float32))
    cond = net.begin("cond")
    i, *_ = carried()
    net.result(net.op("LESS", [i, ints(5)], [("bool", None, (1,))], "Less"))
    body = net.begin("body")
    i, rows2, h, x2 = carried()
    begin = net.op("CONCATENATION", [i, ints(0, 0)], [("i32", None, (3,))], "Concatenation", axis=0)
    row = net.op("SLICE", [x2, begin, ints(1, 2, 3)], [("f32", None, (1, 2, 3))], "Slice")
    row = net.op("RESHAPE", [row, ints(2, 3)], [("f32", None, (2, 3))], "Reshape")
    h = net.op("TANH", [net.op("ADD", [row, h], [("f32", None, (2, 3))], "Add")], [("f32", None, (2, 3))])
    size = net.op("CONCATENATION", [i, ints(-1, -1)], [("i32", None, (3,))], "Concatenation", axis=0)
    before = net.op("SLICE", [rows2, ints(0, 0, 0), size], ["f32"], "Slice")
    after = net.op("ADD", [i, ints(1)], [("i32", None, (1,))], "Add")
    rest = net.op("CONCATENATION", [after, ints(0, 0)], [("i32", None, (3,))], "Concatenation", axis=0)
    rest = net.op("SLICE", [rows2, rest, ints(-1, -1, -1)], ["f32"], "Slice")
    one = net.op("RESHAPE", [h, ints(1, 2, 3)], [("f32", None, (1, 2, 3))], "Reshape")
    net.result(after, net.op("CONCATENATION", [before, one, rest], ["f32"], "Concatenation", axis=0), h, x2)
    net.end()
    kinds = [("i32", None, (1,)), ("f32", None, (5, 2, 3)), ("f32", None, (2, 3)), ("f32", None, (5, 2, 3))]
    net.result(*net.op("WHILE", [n, rows, state, x], kinds, "While", cond_subgraph_index=cond, body_subgraph_index=body)[1:3])
    given = floats(rng, (5, 2, 3))
    return Case("while_list", net, [[np.array([0], np.int32), given], [np.array([3], np.int32), given]], compiled=True)


def variables(Case, rng):
    """A counter: a variable that is set once and grows with every run."""
    for kind in ("f32", "i8"):
        q = Q(0.1, 0) if kind == "i8" else None
        net = Net()
        x = net.input(kind, (1, 4), q)
        init = net.begin("init")
        handle = net.op("VAR_HANDLE", [], [("resource", None, ())], "VarHandle", container="c", shared_name="v")
        start = np.array([[1, 2, 3, 4]], np.float32 if kind == "f32" else np.int8)
        net.op("ASSIGN_VARIABLE", [handle, net.const(start, q)], [], "AssignVariable")
        net.end()
        net.op("CALL_ONCE", [], [], "CallOnce", init_subgraph_index=init)
        handle = net.op("VAR_HANDLE", [], [("resource", None, ())], "VarHandle", container="c", shared_name="v")
        old = net.op("READ_VARIABLE", [handle], [(kind, q, (1, 4))], "ReadVariable")
        new = net.op("ADD", [old, x], [(kind, q, (1, 4))], "Add")
        net.op("ASSIGN_VARIABLE", [handle, new], [], "AssignVariable")
        net.result(net.op("MUL", [new, new], [(kind, Q(0.2, 0) if q else None, (1, 4))], "Mul"))
        yield Case(f"variable_{kind}", net, [[floats(rng, (1, 4)) if kind == "f32" else ints(rng, "i8", (1, 4), -9, 9)]] * 4, compiled=True, state=True)


def cases(Case, rng):
    for part in (svdf, lstm, rnn, branches, variables):
        yield from part(Case, rng)

"""Branches of If whose results differ in rank: where what follows is wrong for one of them, the other is built, and a run that
takes the wrong one is refused by every engine; where it is right for both, the model is refused."""
from lib import onnxfile as onnx
from lib.core import Test
from suite.cli import Cli, want


def choice(c, name, follow):
    """If(sum(x) > 0, x as [1,2,3], x), and what follows."""
    g, then, other = onnx.Graph(), onnx.Graph("t"), onnx.Graph("e")
    x = g.input([2, 3], name="x")
    positive = g.node("Greater", [g.node("ReduceSum", [x], keepdims=0), g.const([], [0])])
    then.output(then.node("Unsqueeze", [x, then.ints(0)], ["deep"]), None)
    other.output(other.node("Identity", [x], ["flat"]), None)
    g.output(follow(g, g.node("If", [positive], then_branch=then, else_branch=other)), None)
    return c.save(name, onnx.model(g))


def one_fits(c):
    model = choice(c, "m.onnx", lambda g, v: g.node("Gemm", [v, g.const([3, 1], [1, 10, 100])], ["y"]))
    for engine in ("ref", "interp", "c"):
        got = c.run("run", model, "--engine", engine, "--input", "x=[[-1,-2,-3],[0,-0.0,1]]").out.decode()
        want("-321 100" in got, f"{engine}: {got}")
        c.run("run", model, "--engine", engine, "--input", "x=[[1,2,3],[4,5,6]]", code=4, text="do not fit what follows")
    got = c.run("run", model, "--freeze", "x=[[1,2,3],[4,5,6]]", code=4).text()
    want("Gemm" in got, f"the branch that is taken is wrong, which is known before the run: {got}")


def both_fit(c):
    model = choice(c, "both.onnx", lambda g, v: g.node("Neg", [v], ["y"]))
    c.run("compile", model, "-o", "both.c", code=3, text="a result has another rank in each branch")


def tests(env):
    return [Test(f"cli/branches/{fn.__name__}", lambda fn=fn: fn(Cli(env, "branches_" + fn.__name__)), cost=2) for fn in (one_fits, both_fit)]

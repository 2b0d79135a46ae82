"""Slow tests of the language and of training: every program on compiling engines, and trainings by several processes of which
one is killed, at 20 points in time."""
import os
import random
import signal
import subprocess
import time

from lib.core import Skip, Test, need, run, want
from suite import lang
from suite.fit import DIGITS, IMAGES, MPI, train

KILLS = 20


def programs(env, engine):
    """All programs with tensors print what they print elsewhere."""
    if engine == "jit" and "LLVM" not in run([env.need_ingot(), "--version"], 20).out.decode():
        raise Skip("there is no LLVM")
    for name in sorted(os.listdir(lang.TOP)):
        if name.endswith(".ch"):
            p = lang.Program(os.path.join(lang.TOP, name))
            if p.objects:
                lang.execute(env, p, p.path, engine)


def ranks_of(pid):
    """Processes below mpirun that train."""
    return [int(x) for x in run(["pgrep", "-P", str(pid)], 10).out.split()]


def killed(env, count):
    """Kills a process at random times: the last run ends with the bits of an uninterrupted training."""
    need("mpirun")
    folder = env.scratch("heavy", f"killed-{count}")
    words = [DIGITS, "--data", IMAGES, "--batch", "24", "--epochs", "40", "--lr", "0.01", "--seed", "3", "--engine", "vm", "--accumulate", str(count)]
    start = time.monotonic()
    whole = train(env, [*words, "-o", "whole.onnx"], folder)
    span = time.monotonic() - start
    with open(os.path.join(folder, "whole.onnx"), "rb") as f:
        bits = f.read()
    many = [*MPI, "-n", str(count), env.ingot, "train", *words, "-o", "many.onnx", "--checkpoint-every", "0"]
    r, kills, limit = random.Random(count), 0, time.monotonic() + 1800
    while kills < KILLS and time.monotonic() < limit:
        p = subprocess.Popen(many, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder)
        time.sleep(0.1 + r.random() * span)
        found = ranks_of(p.pid)
        if found and p.poll() is None:
            os.kill(r.choice(found), signal.SIGKILL)
            kills += 1
        p.communicate(timeout=120)
        if p.returncode == 0:  # it had ended: begin again
            os.remove(os.path.join(folder, "many.onnx"))
    want(kills == KILLS, f"{kills} were killed")
    got = run(many, 300, cwd=folder)
    want(not got.rc and got.out == whole.out, f"another table: {got.out.decode()}, expected {whole.out.decode()}")
    with open(os.path.join(folder, "many.onnx"), "rb") as f:
        want(f.read() == bits, "killed processes leave other weights")


def tests(env):
    out = [Test(f"heavy/programs-{e}", lambda e=e: programs(env, e), cost=120) for e in ("c", "jit")]
    return out + [Test(f"heavy/killed-{n}", lambda n=n: killed(env, n), cost=60) for n in (2, 4)]

#!/usr/bin/env python3
"""`make bench-c`: tables that compare generated C with emx-onnx-cgen.

    bench/c.py [sense] [others] [arm] [weights] [bert]      all of them when none is named

sense, others: both generators on the same models, with the same gcc flags, calls and inputs. Columns: memory written (arena and stack,
or heap and static data), allocations per run, bytes of code, lines of C without data, seconds to generate and to compile, CPU
milliseconds of a run, largest difference from ONNX Runtime. The Sense graph has limits on these. For scale, the table also has the
difference between ONNX Runtime with and without its graph optimizations.
arm: small models for a Cortex-M4: flash, RAM and stack. weights: a model with 100 MB of weights. bert: BERT-base with up to
512 tokens, several lengths by one program. Runs with the Python of build/venv; emx-onnx-cgen gets an environment of its
own, build/emx-venv. Exit status 1 when a limit is exceeded.
"""
import ctypes
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.append(os.path.join(ROOT, "test", "make"))
import oracle  # noqa: E402
import timer  # noqa: E402

BUILD = os.path.join(ROOT, "build")
INGOT = os.environ.get("INGOT", os.path.join(BUILD, "ingot"))
WORK = os.path.join(BUILD, "tmp", "bench-c")
EMX = os.path.join(BUILD, "emx-venv", "bin", "emx-onnx-cgen")
EMX_VERSION = "1.4.0"
FLAGS = ["-O3", "-march=native", "-ffp-contract=off", "-std=gnu99", "-w"]
OTHERS = ("digits", "mobilenetv2", "squeezenet", "silero-v6", "magika", "ppocr-cls")
SMALL = {"digits": ["-d", "batch=1"], "tour": ["-d", "batch=1"], "silero-v6": [], "ppocr-cls": []}
MOST = {"arena": 3200000, "code": 150 * 1024, "off": 1e-6}  # limits of the Sense graph
# Published results of programs that are not run here.
PUBLISHED = """published, not measured here:
  Sense itself (TVM to C): 388 calls, 0 allocations, arena 22.34 MB, 236 KB of code, 7553 lines, 4.1 ms on another machine, 2.4e-07 off
  onnx2c: built from source with protobuf, not a package; one static union per lifetime, first free slot whatever its size; no
  allocation, weights as decimal text in the C file"""
bad = []


def check(good, what):
    if not good:
        bad.append(what)
    return "ok" if good else "TOO MUCH"


# ---- models ----

def model_of(name):
    """Path and inputs."""
    if name == "digits":
        return os.path.join(ROOT, "models", "digits.onnx"), {"image": np.random.default_rng(5).random((1, 1, 8, 8), np.float32)}
    if name == "tour":
        return os.path.join(ROOT, "test", "docs", "tour.onnx"), {"x": np.random.default_rng(5).random((1, 1, 3, 3), np.float32)}
    sys.path.insert(0, HERE)
    import nets
    path = nets.make(name)
    with np.load(path[:-5] + ".npz") as z:
        return path, {k: z[k] for k in z.files}


def reference(path, feed, optimise=True):
    s = oracle.session(path, optimise, threads=1)
    return [(o.name, a) for o, a in zip(s.get_outputs(), s.run(None, feed))]


# ---- generating, compiling, calling ----

# Counts heap allocations of a library and calls its entry many times.
HOST = """#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static size_t live, most, calls;
void *__real_malloc(size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n) {
  size_t *p = __real_malloc(n + 64);
  if (!p) return p;
  calls++, live += *p = n;
  if (live > most) most = live;
  return (char *)p + 64;
}
void *__wrap_calloc(size_t n, size_t m) {
  void *p = __wrap_malloc(n * m);
  return p ? memset(p, 0, n * m) : p;
}
void __wrap_free(void *p) {
  if (!p) return;
  size_t *q = (size_t *)(void *)((char *)p - 64);
  live -= *q;
  __real_free(q);
}
@DECLARE@
void host_run(void **a) { @CALL@; }
void host_heap(size_t *out) { out[0] = calls, out[1] = most, calls = most = 0; }
double host_time(void **a) {
  struct timespec t, u;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  @CALL@;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &u);
  return (double)(u.tv_sec - t.tv_sec) * 1e3 + (double)(u.tv_nsec - t.tv_nsec) * 1e-6;
}
"""


def timed(cmd, **how):
    """Wall seconds and CPU seconds of a process that must succeed."""
    start = time.perf_counter()
    with timer.Processor() as used:
        got = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how)
    if got.returncode:
        raise RuntimeError(f"{os.path.basename(cmd[0])}: {(got.stdout.strip().splitlines() or ['?'])[-1][:90]}")
    return time.perf_counter() - start, used.seconds


def sections(path, tool="size"):
    """(code, constants, writable) bytes of an object file."""
    text = subprocess.run([tool, "-A", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [(w[0], int(w[1])) for w in (line.split() for line in text.splitlines()) if len(w) == 3 and w[1].isdigit()]
    total = lambda *kinds: sum(n for name, n in rows if name.startswith(kinds))  # noqa: E731
    return total(".text"), total(".rodata", ".weights"), total(".bss", ".data")


def code_lines(path):
    """Lines of a C file, except blank lines and lines of data (numbers or strings)."""
    data = re.compile(r"""[\s{},;]*("[^"]*"|[-+]?[\d.][\w.+-]*|[\s{},;])*[\s{},;]*\n?""")
    with open(path) as f:
        return sum(1 for line in f if line.strip() and not data.fullmatch(line.strip()[:400]))


class Made:
    """One model translated by one generator, compiled and loaded."""

    def __init__(self, tool, folder, generate, declare, call):
        os.makedirs(folder, exist_ok=True)
        self.tool, self.c = tool, os.path.join(folder, "net.c")
        self.generated = timed(generate, cwd=folder)[1]
        with open(os.path.join(folder, "host.c"), "w") as f:
            f.write(HOST.replace("@DECLARE@", declare(self.c)).replace("@CALL@", call(self.c)))
        self.compiled = timed(["gcc", *FLAGS, "-fPIC", "-c", "net.c", "-o", "net.o"], cwd=folder)[1]
        timed(["gcc", *FLAGS, "-fPIC", "-shared", "-Wl,--wrap=malloc,--wrap=calloc,--wrap=free", "host.c", "net.o", "-o", "net.so", "-lm"], cwd=folder)
        self.code, _, self.static = sections(os.path.join(folder, "net.o"))
        self.lines = code_lines(self.c)
        self.lib = ctypes.CDLL(os.path.join(folder, "net.so"))
        self.lib.host_time.restype = ctypes.c_double

    def run(self, arrays):
        """Times and heap use of runs on these arrays, in the order of the entry."""
        args = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        heap = (ctypes.c_size_t * 2)()
        self.lib.host_run(args)
        self.lib.host_heap(heap)
        self.lib.host_run(args)
        self.lib.host_heap(heap)
        self.calls, self.heap = heap[0], heap[1]
        times = []
        while sum(times) < 500 or len(times) < 5:
            times.append(self.lib.host_time(args))
        self.ms = statistics.median(times)


def macro(text, name):
    return int(re.search(rf"#define NET_{name} (\d+)", text)[1])


def aligned(n):
    raw = np.zeros(n + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + n]


def by_ingot(name, path, feed, expected):
    folder = os.path.join(WORK, "ingot-" + name)
    shapes = ",".join(f"{k}:{'x'.join(map(str, a.shape))}" for k, a in feed.items() if a.ndim)

    def head(_):
        with open(os.path.join(folder, "net.h")) as f:
            return f.read()
    count = lambda text: macro(text, "INPUTS") + macro(text, "OUTPUTS") + 1  # noqa: E731
    m = Made("ingot", folder, [INGOT, path, "--shapes", shapes, "--march", "native", "--weights", "file", "--no-selftest", "--quiet", "--name", "net", "-o", "net.c"],
             lambda _: '#include "net.h"', lambda c: f"net_run({', '.join(f'a[{k}]' for k in range(count(head(c))))})")
    text = head(None)
    names = [re.search(rf'#define NET_INPUT{k}_NAME "(.*)"', text)[1] for k in range(macro(text, "INPUTS"))]
    outs = [np.zeros(a.shape, a.dtype) for _, a in expected]
    m.run([aligned(macro(text, "ARENA_BYTES") + 64), *[np.ascontiguousarray(feed[n]) for n in names], *outs])
    m.memory, m.arena = macro(text, "ARENA_BYTES") + macro(text, "STACK_BYTES") + m.static, macro(text, "ARENA_BYTES")
    m.off = distance(outs, expected)
    return m


def by_emx(name, path, feed, expected):
    folder = os.path.join(WORK, "emx-" + name)
    dims = ["--input-dim", "batch=1"] if name == "digits" else []

    def entry(c):
        with open(c) as f:
            return re.search(r"^void net\((.*?)\) \{", f.read(), re.M | re.S)[1]

    def order(c):
        return [re.search(r"(\w+)\[", p)[1] for p in re.split(r",\s*(?=const |float|int|double|uint|_Bool)", entry(c))]
    m = Made("emx-onnx-cgen", folder, [EMX, "compile", path, "net.c", "--model-name", "net", *dims], lambda c: "void net();\n_Bool net_load(const char *);",
             lambda c: f"net({', '.join(f'a[{k}]' for k in range(len(order(c))))})")
    if os.path.exists(os.path.join(folder, "net.bin")):
        m.lib.net_load(os.path.join(folder, "net.bin").encode())
    plain = lambda s: re.sub(r"\W", "_", s)  # noqa: E731
    outs = [np.zeros(a.shape, a.dtype) for _, a in expected]
    known = {**{plain(k): np.ascontiguousarray(a) for k, a in feed.items()}, **{plain(n): a for (n, _), a in zip(expected, outs)}}
    m.run([known[n] for n in order(m.c)])
    m.memory = m.heap + m.static
    m.off = distance(outs, expected)
    return m


def distance(outs, expected):
    return max(float(np.abs(o.astype(np.float64) - e.astype(np.float64)).max()) for o, (_, e) in zip(outs, expected))


def ensure_emx():
    if os.path.exists(EMX):
        return True
    print("bench: Python environment in build/emx-venv", file=sys.stderr)
    try:
        timed([sys.executable, "-m", "venv", os.path.join(BUILD, "emx-venv")])
        timed([os.path.join(BUILD, "emx-venv", "bin", "python"), "-m", "pip", "install", "-q", f"emx-onnx-cgen=={EMX_VERSION}"])
        return True
    except RuntimeError as e:
        print(f"bench: emx-onnx-cgen {EMX_VERSION} cannot be had: {e}")
        return False


HEAD = f"{'':14}{'':15}{'memory':>12}{'mallocs':>9}{'code':>10}{'lines':>8}{'generate':>10}{'gcc':>8}{'run':>10}{'off ORT':>10}"


def compare(name):
    """Rows of both generators; returns that of ingot."""
    path, feed = model_of(name)
    expected = reference(path, feed)
    first = None
    for make in (by_ingot, by_emx):
        if make is by_emx and not ensure_emx():
            continue
        try:
            m = make(name, path, feed, expected)
        except (RuntimeError, KeyError, TypeError) as e:
            print(f"{name:14}{'ingot' if make is by_ingot else 'emx-onnx-cgen':15}{type(e).__name__}: {e}"[:150])
            if make is by_ingot:
                bad.append(name)
            continue
        first = first or m
        print(f"{name:14}{m.tool:15}{m.memory:12,}{m.calls:9}{m.code:10,}{m.lines:8,}{m.generated:8.2f} s{m.compiled:6.1f} s{m.ms:7.2f} ms{m.off:10.1e}",
              flush=True)
    return first, path, feed, expected


def sense():
    print("\nThe Sense graph: 388 nodes, 23 MB of weights. memory: bytes written besides inputs and outputs.\n" + HEAD)
    m, path, feed, expected = compare("sense")
    if m is None:
        return
    own = distance([a for _, a in reference(path, feed, optimise=False)], expected)
    print(f"  entry calls 1, allocations {m.calls} ({check(m.calls == 0, 'allocations')}), arena {m.arena:,} of at most {MOST['arena']:,} "
          f"({check(m.arena <= MOST['arena'], 'arena')}), code {m.code:,} of at most {MOST['code']:,} ({check(m.code <= MOST['code'], 'code')}),\n"
          f"  off ONNX Runtime {m.off:.1e} of at most {MOST['off']:.0e} ({check(m.off <= MOST['off'], 'difference')}); "
          f"ONNX Runtime is {own:.1e} off itself without its graph optimisations")
    print(PUBLISHED)


def others():
    print("\nOther models, " + " ".join(FLAGS[:3]) + "\n" + HEAD)
    for name in OTHERS:
        compare(name)


# ---- boards, weights, lengths ----

def arm():
    if not shutil.which("arm-none-eabi-gcc"):
        print("\nCortex-M4: arm-none-eabi-gcc is not installed (Debian: gcc-arm-none-eabi)")
        return
    print(f"\nCortex-M4, -Os, bytes\n{'':14}{'flash':>12}{'of it code':>12}{'RAM':>12}{'of it arena':>12}{'stack':>10}{'inputs, outputs':>17}")
    for name, args in SMALL.items():
        path, feed = model_of(name)
        folder = os.path.join(WORK, "arm-" + name)
        os.makedirs(folder, exist_ok=True)
        shapes = ",".join(f"{k}:{'x'.join(map(str, a.shape))}" for k, a in feed.items() if a.ndim)
        timed([INGOT, path, *(args or ["--shapes", shapes]), "--quiet", "--no-selftest", "--name", "net", "-o", "net.c"], cwd=folder)
        timed(["arm-none-eabi-gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Os", "-ffreestanding", "-mcpu=cortex-m4", "-mthumb",
               "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-c", "net.c", "-o", "net.o"], cwd=folder)
        code, constants, static = sections(os.path.join(folder, "net.o"), "arm-none-eabi-size")
        with open(os.path.join(folder, "net.h")) as f:
            text = f.read()
        arena, stack = macro(text, "ARENA_BYTES"), macro(text, "STACK_BYTES")
        ports = sum(a.nbytes for a in feed.values()) + sum(a.nbytes for _, a in reference(path, feed))
        print(f"{name:14}{code + constants:12,}{code:12,}{arena + stack + static + ports:12,}{arena:12,}{stack:10,}{ports:17,}")
    print("`test/run promises/arm promises/board` builds all models of the tests and runs self-tests on a simulated board.")


def weights():
    """100 MB of weights. Goals in seconds of CPU: ingot under 2, gcc under 15 with strings and under 2 with a file."""
    from onnx import TensorProto, helper, numpy_helper
    side, path = 2500, os.path.join(WORK, "big.onnx")
    rng, nodes, inits = np.random.default_rng(1), [], []
    for k in range(4):
        inits.append(numpy_helper.from_array(rng.standard_normal((side, side), np.float32) / 50, f"w{k}"))
        nodes.append(helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"x{k + 1}"]))
    value = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, side])  # noqa: E731
    onnx.save(helper.make_model(helper.make_graph(nodes, "big", [value("x0")], [value("x4")], inits), ir_version=8,
                                opset_imports=[helper.make_opsetid("", 17)]), path)
    print("\n100 MB of weights, seconds of processor (on the clock)")
    for how, most in (("text", 15), ("file", 2)):
        a = timed([INGOT, "big.onnx", "--weights", how, "--quiet", "-o", "big.c"], cwd=WORK)
        b = timed(["gcc", "-O2", "-c", "big.c", "-o", "big.o"], cwd=WORK)
        print(f"  --weights {how}: ingot {a[1]:.2f} ({a[0]:.2f}), at most 2: {check(a[1] < 2, 'ingot, ' + how)}; "
              f"gcc {b[1]:.2f} ({b[0]:.2f}), at most {most}: {check(b[1] < most, 'gcc, ' + how)}", flush=True)
    for name in ("big.onnx", "big.c", "big.h", "big.o", "big.bin"):
        if os.path.exists(os.path.join(WORK, name)):
            os.unlink(os.path.join(WORK, name))


def bert():
    path = os.path.join(BUILD, "bench", "bert-base.onnx")
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        timed([sys.executable, os.path.join(HERE, "mkbert.py"), path + ".tmp"])
        os.replace(path + ".tmp", path)
    secs = timed([INGOT, "build", path, "--max-shapes", "input_ids:1x512,attention_mask:1x512", "--weights", "file", "-O3", "--march", "native", "--quiet",
                  "-o", "bert"], cwd=WORK)
    print(f"\nBERT-base, any length up to 512 from one program (built in {secs[0]:.1f} s)")
    s = oracle.session(path, threads=1)
    rng = np.random.default_rng(3)
    for length in (1, 7, 128, 512):
        feed = {"input_ids": rng.integers(0, 30522, (1, length)), "attention_mask": np.ones((1, length), np.int64)}
        np.savez(os.path.join(WORK, "in.npz"), **feed)
        secs = timed(["./bert", "--inputs", "in.npz", "--output", "out.npz"], cwd=WORK)
        with np.load(os.path.join(WORK, "out.npz")) as z:
            have = z["last_hidden_state"]
        want = s.run(None, feed)[0]
        far = float(np.abs(have - want).max())
        print(f"  {length:4} tokens: {far:.1e} off ONNX Runtime, at most {1e-4 * max(1, np.abs(want).max()):.0e}: "
              f"{check(far <= 1e-4 * max(1, np.abs(want).max()), f'BERT, {length}')}; {secs[1]:.2f} s, the whole process", flush=True)
    os.unlink(os.path.join(WORK, "bert"))


PARTS = {"sense": sense, "others": others, "arm": arm, "weights": weights, "bert": bert}


def main():
    os.makedirs(WORK, exist_ok=True)
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
    print("\nok" if not bad else f"\nTOO MUCH: {', '.join(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

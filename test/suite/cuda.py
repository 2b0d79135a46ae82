"""Engine cuda without a GPU: test/cuda/fake_cuda.c replaces the driver and NVRTC, test/cuda/shim.h runs the kernels on the CPU.

Results must have the bits of interp, in three orders of warps and lanes.
If NVRTC is found, it compiles kernels for every chip, without spills.
On a machine with a GPU, `make test-gpu` runs bench/cuda.py.
"""
import ctypes
import glob
import os
import random
import re
import shutil
from lib import npy, tfile
from lib.core import ROOT, Fail, Skip, Test, explain, run, tail
from suite import blocks

DIGITS = os.path.join(ROOT, "models", "digits.onnx")
ROWS = os.path.join(ROOT, "test", "cuda", "rows.ing")
PRODUCTS = os.path.join(ROOT, "test", "cuda", "products.ing")
CHIPS = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100", "sm_120")
EVERY = 6  # of the graphs of test/exec
# Programs with other code paths: scalars set by kernels, loops between kernels, state, random numbers, vectors of int8 and f16.
NAMED = ("check_index", "nonzero", "if_else", "cumsum", "random", "topk")


def shim(env):
    """Environment in which engine cuda finds the shim."""
    folder = env.scratch("cuda")
    library = os.path.join(folder, "libcuda.so.1")

    def build():
        got = run(["cc", "-O1", "-shared", "-fPIC", "-o", library, os.path.join(ROOT, "test", "cuda", "fake_cuda.c"), "-ldl"], 120, merge=True)
        if got.rc:
            raise Fail(f"fake_cuda.c: {tail(got.out.decode())}")

    if not shutil.which("g++"):
        raise Skip("no g++")
    if os.uname().machine != "x86_64":
        raise Skip("the shim is compiled for x86-64")
    env.once("fake cuda", build)
    return {"LD_LIBRARY_PATH": folder, "INGOT_NVRTC": library, "SHIM": os.path.join(ROOT, "test", "cuda", "shim.h"), "SHIM_FOLDER": folder,
            "XDG_CACHE_HOME": os.path.join(folder, "cache")}


def agree(env, model, name, orders=3, options=()):
    """All orders give the bytes of interp for the same program. The shim multiplies fragments as interp does."""
    settings = shim(env)
    folder = env.scratch("cuda", name)
    want = os.path.join(folder, "interp.npz")
    got = run([env.need_ingot(), "run", model, "--engine", "interp", "--march", "cuda", "-q", *options, "-o", want], 120)
    if got.rc:
        raise Fail(f"interp: {explain(got)}: {tail(got.text())}")
    for order in range(orders):
        path = os.path.join(folder, f"{order}.npz")
        got = run([env.ingot, "run", model, "--engine", "cuda", "-q", "--keep-code", *options, "-o", path], 300, env={**settings, "SHIM_ORDER": str(order)})
        if got.rc:
            raise Fail(f"order {order}: {explain(got)}: {tail(got.text())}")
        here, there = npy.load_npz(path), npy.load_npz(want)
        for name in there:
            far = npy.differ(here[name], there[name]) if name in here else "is missing"
            if far:
                raise Fail(f"order {order} of warps and lanes, compared with interp: {name} {far}")


def texts():
    """Some graphs of test/exec with fixed size and bounded outputs, and the named ones."""
    graphs = [t for t in tfile.files("exec") if t.form == "graph" and not os.path.basename(t.path).startswith("loop_")]
    fixed = [t for t in graphs if "sym " not in t.body and "2000000000" not in t.body]
    return [t for t in graphs if t in fixed[::EVERY] or os.path.basename(t.path)[:-2] in NAMED]


def exec_graph(env, t):
    agree(env, t.write(env), "exec_" + os.path.basename(t.path)[:-2], orders=2)


def many_runs(env):
    """The second run is recorded as a graph, the third replays it; bench runs each kind."""
    settings = shim(env)
    got = run([env.need_ingot(), "bench", DIGITS, "--engine", "cuda", "--seconds", "0.05", "--json", "--per-kernel", "-q"], 300, env=settings)
    if got.rc or '"engine":"cuda"' not in got.out.decode() or '"values"' not in got.out.decode():
        raise Fail(f"bench: {explain(got)}: {tail(got.text())}")
    got = run([env.ingot, "verify", DIGITS, "--engine", "cuda", "-q"], 300, env=settings)
    if got.rc or "ok" not in got.out.decode():
        raise Fail(f"verify: {explain(got)}: {tail(got.text())}")


def chat(env):
    """A language model: answers and perplexity equal those of bytecode. Chunks of one size are launched, recorded, and replayed
    at later positions."""
    from suite.play import made
    settings, model = shim(env), made(env)
    ask = [env.need_ingot(), "play", model, "--context", "64", "-q", "-p", "ab", "--precise", "--temperature", "0", "--max-tokens", "8", "--engine"]
    score = [env.ingot, "perplexity", model, "--ids", " ".join(str(3 + i * 7 % 40) for i in range(23)), "--precise", "--chunk", "4", "--context", "64", "--engine"]
    for words in (ask, score):
        vm, gpu = run([*words, "vm"], 120, env=settings), run([*words, "cuda"], 300, env=settings)
        text = [re.sub(rb"perplexity.*|(?<=\.\d\d\d)\d+", b"", got.out) for got in (vm, gpu)]  # sums differ in the last bits
        if vm.rc or gpu.rc or not vm.out or text[0] != text[1]:
            raise Fail(f"{words[1]}: vm {vm.out!r}, cuda {gpu.out!r}: {explain(gpu)}: {tail(gpu.text())}")
    got = run([env.ingot, "bench", model, "--context", "64", "--engine", "cuda", "--json"], 300, env=settings)
    if got.rc or b"decode_tokens_per_s" not in got.out:
        raise Fail(f"bench: {explain(got)}: {tail(got.text())}")
    if run([*ask, "interp"], 60, env=settings).rc != 2:
        raise Fail("play --engine interp was not refused")


def memory(env):
    """Out of memory: the message says what needs how much, and what is free."""
    got = run([env.need_ingot(), "run", DIGITS, "--engine", "cuda", "-q"], 120, env={**shim(env), "SHIM_MEMORY": "4096"})
    if got.rc != 5 or "not enough memory on shim: the weights needs" not in got.text().replace("need ", "needs ") or "are free" not in got.text():
        raise Fail(f"{explain(got)}: {tail(got.text())}")


def missing(env):
    """Without the driver: exit code 3, and what was looked for."""
    try:
        ctypes.CDLL("libcuda.so.1")
        raise Skip("this machine has the CUDA driver")
    except OSError:
        pass
    got = run([env.need_ingot(), "run", DIGITS, "--engine", "cuda"], 60)
    if got.rc != 3 or "libcuda.so.1" not in got.text():
        raise Fail(f"no driver: {explain(got)}: {tail(got.text())}")
    settings = shim(env)
    got = run([env.ingot, "run", DIGITS, "--engine", "cuda"], 60, env={**settings, "INGOT_NVRTC": "/nowhere/libnvrtc.so"})
    if got.rc != 3 or "/nowhere/libnvrtc.so" not in got.text():
        raise Fail(f"no NVRTC: {explain(got)}: {tail(got.text())}")
    got = run([env.ingot, "doctor"], 120, env=settings)
    if "shim, compute capability 9.0" not in got.out.decode():
        raise Fail(f"doctor: {tail(got.out.decode(), 20)}")


def nvrtc(env):
    """The library that ingot finds, or the one of the wheel in build/nvrtc."""
    wheel = glob.glob(os.path.join(env.build, "nvrtc", "nvidia", "*", "lib", "libnvrtc.so.*"))
    for name in ("libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13", *(w for w in wheel if "builtins" not in w)):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise Skip("no NVRTC 13 (pip install nvidia-cuda-nvrtc)")


def compile_for(lib, text, chip):
    """Messages of the compiler."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    option = [b"--gpu-architecture=" + chip.encode(), b"--fmad=false", b"--std=c++17", b"-w", b"--ptxas-options=-v"]
    lib.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None)
    failed = lib.nvrtcCompileProgram(program, len(option), (ctypes.c_char_p * len(option))(*option))
    lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value or 1)
    lib.nvrtcGetProgramLog(program, log)
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise Fail(f"{chip}: {tail(log.value.decode(), 12)}")
    return log.value.decode()


def product(env, precision):
    """block_product: the bits of interp, and close to the reference."""
    name = "products_" + precision
    agree(env, PRODUCTS, name, options=("--precision", precision))
    folder = env.scratch("cuda", name)
    got = run([env.ingot, "run", PRODUCTS, "--engine", "ref", "-q", "-o", os.path.join(folder, "ref.npz")], 120)
    if got.rc:
        raise Fail(f"ref: {explain(got)}: {tail(got.text())}")
    here, there = npy.load_npz(os.path.join(folder, "0.npz")), npy.load_npz(os.path.join(folder, "ref.npz"))
    for name in there:  # sums of at most 360 products; f16 and tf32 have 10 mantissa bits, bf16 has 7
        most = max(abs(x) for x in there[name].data)
        far = max(abs(x - y) for x, y in zip(here[name].data, there[name].data))
        if not far <= {"f32": 1e-5, "bf16": 2e-2}.get(precision, 4e-3) * most:
            raise Fail(f"{name}: differs by {far}, the largest number is {most}")


def rows(env, name, text, inputs):
    """Products of a few rows: the bits of interp in every order, for rows alone and together, and near those of the reference."""
    settings = shim(env)
    folder = env.scratch("cuda", "rows_" + name)
    model = os.path.join(folder, "rows.ing")
    with open(model, "w", encoding="ascii") as f:
        f.write(text)

    def go(first, n, *options):
        given = []
        for key, (width, moves) in inputs.items():
            rng = random.Random(key)
            data = [rng.gauss(0, 1) for _ in range(13 * width)]
            at = (first if moves else 0) * width
            array = npy.Array("f32", (n if moves else 3, width), data[at:at + (n if moves else 3) * width])
            with open(os.path.join(folder, key + ".npy"), "wb") as f:
                f.write(npy.encode(array))
            given += ["--input", f"{key}=@{os.path.join(folder, key)}.npy"]
        out = os.path.join(folder, "out.npz")
        got = run([env.need_ingot(), "run", model, "-q", *given, *options, "-o", out], 300, env=settings)
        if got.rc:
            raise Fail(f"{options}: {explain(got)}: {tail(got.text())}")
        return {key: a.data for key, a in npy.load_npz(out).items()}

    want, reference = go(0, 13, "--engine", "interp", "--march", "cuda"), go(0, 13, "--engine", "ref")
    for key, there in reference.items():
        far = max(abs(x - y) for x, y in zip(want[key], there))
        if not far <= 1e-5 * max(map(abs, there)):
            raise Fail(f"{key}: differs from the reference by {far}")
    for order in range(3):
        settings["SHIM_ORDER"] = str(order)
        parts = [go(*at, "--engine", "cuda", "--keep-code") for at in ((0, 13), (0, 1), (1, 12))]
        for key, there in want.items():
            if parts[0][key] != there or (key != "three" and [*parts[1][key], *parts[2][key]] != [*there]):
                raise Fail(f"order {order}: {key} differs from interp, or rows alone from rows together")


def chip(env, name):
    lib = nvrtc(env)
    for precision in ("f32", "f16", "bf16", "tf32"):
        compiled(env, lib, name, PRODUCTS, precision)
    compiled(env, lib, name, ROWS, "f32")
    compiled(env, lib, name, DIGITS, "f32")


def compiled(env, lib, name, model, precision):
    got = run([env.need_ingot(), "opt", model, "--march", "cuda", "--precision", precision, "--dump=cuda", "--constants", "all", "-q"], 60)
    if got.rc or b"IG_KERNEL" not in got.out:
        raise Fail(f"--dump=cuda: {explain(got)}: {tail(got.text())}")
    if b"#include <" in got.out.split(b"#ifdef __CUDACC_RTC__")[0]:
        raise Fail("the text for NVRTC includes a header")
    for kernel in re.findall(rb"IG_BLOCK\(\d+\) (\w+\(.*?\n})\n", got.out, re.S):  # before the loop over blocks, or in it and at the end
        if b"ig_after();" not in kernel.split(b"for (")[0] and kernel.count(b"ig_after();") != 2:
            raise Fail(f"a kernel does not wait for earlier ones: {kernel[:2000].decode()}")
    log = compile_for(lib, got.out, name)
    spills = [s for s in re.findall(r"(\d+) bytes spill stores", log) if s != "0"]
    if spills or "spill" not in log:
        raise Fail(f"{name}: {len(spills)} kernels spill")


def file_of(env):
    """--target cuda: the same bytes twice, wrong chips and options refused; nvcc, if installed, compiles the file."""
    folder = env.scratch("cuda", "file")
    read = []
    for _ in range(2):
        got = run([env.need_ingot(), "build", DIGITS, "--target", "cuda:90a,75", "-o", os.path.join(folder, "digits"), "-q"], 60)
        if got.rc:
            raise Fail(f"build: {explain(got)}: {tail(got.text())}")
        read.append([open(os.path.join(folder, "digits" + s), "rb").read() for s in (".cu", ".h", ".bin")])
    if read[0] != read[1]:
        raise Fail("two builds differ")
    for args, rc in ((["--target", "cuda:12"], 2), (["--target", "cuda", "--march", "avx2"], 2), (["--target", "cuda", "--weights", "file"], 3)):
        got = run([env.ingot, "build", DIGITS, *args, "-o", os.path.join(folder, "no"), "-q"], 60)
        if got.rc != rc or os.path.exists(os.path.join(folder, "no.cu")):
            raise Fail(f"{' '.join(args)}: exit {got.rc}, expected {rc}")
    got = run([env.ingot, "build", DIGITS, "--target", "cuda:90a", "-f", "net", "-o", os.path.join(folder, "two-words"), "-q"], 60)
    text = "" if got.rc else open(os.path.join(folder, "two-words.cu"), encoding="utf-8").read()
    if '#include "two-words.h"' not in text or "int net_run(" not in text:
        raise Fail("-f net -o two-words: the .cu does not include the header that was written, or has other names")
    if run([env.ingot, "build", DIGITS, "--target", "cuda", "-o", os.path.join(folder, 'a"b'), "-q"], 60).rc != 2:
        raise Fail("a quote in the file name was not refused")
    for name in ("x.o", "x.a", "x.so", "/dev/null"):
        got = run([env.ingot, "build", DIGITS, "--target", "cuda", "-o", name], 60, cwd=folder)
        if got.rc != 2 or "expected OUT.cu" not in got.text() or os.path.exists(os.path.join(folder, name + ".cu")):
            raise Fail(f"-o {name}: {explain(got)}: {tail(got.text())}")
    got = run([env.ingot, "build", DIGITS, "--target", "cuda:90a", "-o", "said.cu"], 60, cwd=folder)
    if got.rc or "compile it with: nvcc" not in got.text() or "said.cu" not in got.text():
        raise Fail(f"no nvcc command: {tail(got.text())}")
    got = run([env.ingot, "compile", DIGITS, "--march", "cuda", "-o", "x.c"], 60, cwd=folder)
    if got.rc != 3 or "ingot build --target cuda" not in got.text() or os.path.exists(os.path.join(folder, "x.c")):
        raise Fail(f"compile --march cuda: {explain(got)}: {tail(got.text())}")
    nvcc = shutil.which("nvcc")
    if not nvcc:
        raise Skip("no nvcc")
    flags = re.search(rb"nvcc (.*) digits.cu", read[0][0])[1].decode().split()
    got = run([nvcc, *flags, "-Werror", "all-warnings", "digits.cu"], 300, cwd=folder, merge=True)
    if got.rc:
        raise Fail(f"nvcc: {tail(got.out.decode(), 12)}")


def tests(env):
    out = [Test("cuda/digits", lambda: agree(env, DIGITS, "digits"), cost=4), Test("cuda/runs", lambda: many_runs(env), cost=4),
           Test("cuda/chat", lambda: chat(env), cost=8), Test("cuda/memory", lambda: memory(env), cost=1), Test("cuda/missing", lambda: missing(env), cost=1), Test("cuda/file", lambda: file_of(env), cost=5)]
    out += [Test(f"cuda/exec/{os.path.basename(t.path)[:-2]}", lambda t=t: exec_graph(env, t), cost=2) for t in texts()]
    out += [Test(f"cuda/products/{p}", lambda p=p: product(env, p), cost=8) for p in ("f32", "tf32", "f16", "bf16")]
    out += [Test("cuda/rows/plain", lambda: rows(env, "plain", open(ROWS, encoding="ascii").read(), {"x": (200, True), "y": (100, False), "b": (50, True)}), cost=8),
            Test("cuda/rows/quantized", lambda: rows(env, "quantized", blocks.products(random.Random(0), blocks.WAYS), {"x": (512, True), "b": (37, True)}), cost=20)]
    return out + [Test(f"cuda/nvrtc/{c}", lambda c=c: chip(env, c), cost=6) for c in CHIPS]

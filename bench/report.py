#!/usr/bin/env python3
"""Writes docs/results/networks.md, docs/results/networks.svg and build/bench/goals.md from build/bench/results.json.

    bench/report.py [--machine NAME RESULTS]    docs/results/networks-NAME.md instead, from RESULTS of another machine: all thread counts in one table
    bench/report.py --held                      docs/results/networks-avx2.md instead, from `bench/peers.py --held`: all engines without AVX-512

Figures come from bench/peers.py and bench/micro.py. goals.md lists the goals of bench/nets.py that were reached and missed, with reasons from bench/why.txt
(`NAME: reason`, one per line).
"""
import json
import math
import os
import statistics
import sys

import doc

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
RESULTS = os.path.join(ROOT, "build", "bench", "results.json")
GOALS = os.path.join(ROOT, "build", "bench", "goals.md")
PEERS, OURS = ("ort", "openvino", "mnn"), ("ingot-gcc", "ingot-clang")
TITLES = {"ort": "ONNX Runtime", "ort-exact": "ONNX Runtime, exact", "openvino": "OpenVINO", "mnn": "MNN", "ingot-gcc": "ingot gcc", "ingot-clang": "ingot clang"}
WRONG = 1e-2


def number(x):
    return f"{x:.3g}" if x < 100 else f"{x:.0f}"


def load():
    with open(RESULTS) as f:
        return json.load(f)


def why():
    path, found = os.path.join(HERE, "why.txt"), {}
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                if ":" in line and line[0] != "#":
                    name, reason = line.split(":", 1)
                    found[name.strip()] = reason.strip()
    return found


SHORTEST_MS = 0.1  # shorter runs measure the overhead of a call; one of them at 60x would lift every mean


class Row:
    """One network with one number of threads."""

    def __init__(self, name, threads, spec, row):
        self.name, self.threads, self.spec, self.row = name, threads, spec, row
        self.times = {e: r["median_ms"] for e, r in row.items() if isinstance(r, dict) and "median_ms" in r}
        self.wrong = {e for e in self.times if row[e].get("vs_ort_rel", 0) > (0.2 if spec.get("int8") else WRONG)}
        first = next((e for e in PEERS if e in self.times), None)  # the others were compared with it
        self.unchecked = {e for e in self.times if e != first and "vs_ort_rel" not in row[e]}
        peers = [self.times[e] for e in PEERS if e in self.times and e not in self.wrong | self.unchecked]
        self.best = min(peers) if peers else None

    def ratios(self, e):
        """(vs ONNX Runtime, vs the best peer); None if one is missing."""
        t = self.times.get(e)
        if t is None or e in self.wrong | self.unchecked or self.best is None:
            return None
        return (self.times["ort"] / t if "ort" in self.times else None, self.best / t)

    def cell(self, e):
        r = self.row.get(e)
        if not r:
            return ""
        if "refused" in r:
            return "refused"
        text = f"{number(r['median_ms'])} ({number(r['min_ms'])})"
        return text + (" wrong" if e in self.wrong else " unchecked" if e in self.unchecked else "")

    def lacks(self, e):
        """The unmet goals as text; empty if all are met."""
        want, got = self.spec.get("at_least"), self.ratios(e)
        if got is None:
            reason = self.row.get(e, {}).get("refused")
            return f"refused: {reason}" if reason else "wrong result" if e in self.wrong else "not measured"
        parts = []
        if want and got[0] is not None and got[0] < want[0]:
            parts.append(f"{got[0]:.2f}x ONNX Runtime, goal {want[0]}x")
        if want and got[1] < want[1]:
            parts.append(f"{got[1]:.2f}x best peer, goal {want[1]}x")
        if not want and got[1] < 1:
            parts.append(f"{got[1]:.2f}x best peer")
        return "; ".join(parts)


def rows(results, nets, counts=(1, 2)):
    return [Row(n, t, nets.NETS[n], results[f"{n}/{t}"]) for n in nets.ORDER for t in counts if f"{n}/{t}" in results]


def geometric(xs):
    xs = [x for x in xs if x]
    return math.exp(sum(map(math.log, xs)) / len(xs)) if xs else None


def table(head, body):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] + ["| " + " | ".join(b) + " |" for b in body]) + "\n"


def ratio_text(r):
    return "" if r is None else " / ".join("-" if x is None else f"{x:.2f}x" for x in r)


# ---- sections ----

def methods(results, all_rows):
    m = results.get("machine", {})
    used = {}
    for r in all_rows:
        for e, v in r.row.items():
            if isinstance(v, dict) and "version" in v:
                used[e] = (v["version"], v["settings"])
    lines = ["## Method", "",
             f"{m.get('cpu', '?')}, {m.get('cores', '?')} cores; {m.get('gcc', 'no gcc')}; {m.get('clang', 'no clang')}; load average at the start of the last run "
             f"{m.get('load', 0):.1f}.", ""]
    for t in (1, 2):
        p = results.get(f"peak/{t}")
        if p:
            lines += [f"{t} thread{'s' * (t > 1)}: {p['gflops']:.0f} GFLOP/s of float32 multiply-adds, {p['gbps']:.1f} GB/s read from memory.", ""]
    lines += ["One process per engine; the engines take turns in blocks of a few hundred milliseconds, with 50 ms of idle time before each block.",
              "All other engines are stopped by a signal meanwhile.",
              "Batch 1, static shapes, the same inputs for all engines; weights are random except in the real models.",
              "Times are milliseconds: median (minimum). Ratios are ratios of medians.",
              "\"limit\" is the time of the multiply-adds at the measured peak with direct convolution.",
              f"A result that differs from ONNX Runtime's by more than {WRONG:g} of the largest output is marked wrong; a result that was not compared is marked unchecked.",
              "Wrong and unchecked times do not count.", ""]
    lines.append(table(["engine", "version", "settings"], [[TITLES.get(e, e), v, f"`{s}`"] for e, (v, s) in sorted(used.items())]))
    return "\n".join(lines)


def whole(results, all_rows, threads):
    body = []
    top = results.get(f"peak/{threads}", {}).get("gflops")
    engines = [e for e in ("ort", "ort-exact", *PEERS[1:], *OURS) if any(e in r.row for r in all_rows if r.threads == threads)]
    for r in all_rows:
        if r.threads != threads:
            continue
        limit = number(2e-6 * r.row["macs"] / top) if top and r.row.get("macs") and not r.spec.get("bandwidth") and not r.spec.get("int8") else "-"
        body.append([r.spec["title"], limit, *[r.cell(e) for e in engines], *[ratio_text(r.ratios(e)) for e in OURS if e in engines]])
    if not body:
        return ""
    head = ["network", "limit", *[TITLES[e] for e in engines], *[f"{TITLES[e]}: vs ORT / vs best" for e in OURS if e in engines]]
    means = []
    for e in OURS:
        got = [r.ratios(e) for r in all_rows if r.threads == threads and r.ratios(e) and r.times.get("ort", 0) >= SHORTEST_MS]
        if got:
            ort, best = [g[0] for g in got], [g[1] for g in got]
            means.append(f"{TITLES[e]}, the {len(got)} networks that take ONNX Runtime at least {SHORTEST_MS} ms: median {statistics.median(ort):.2f}x ONNX Runtime and "
                         f"{statistics.median(best):.2f}x the fastest peer, geometric mean {geometric(ort):.2f}x and {geometric(best):.2f}x.\n")
    return f"## {'One thread' if threads == 1 else 'Two threads'}\n\n" + table(head, body) + "\n" + "\n".join(means) + "\n"


def reached(all_rows):
    good, bad, reasons = [], [], why()
    for r in all_rows:
        for e in OURS:
            if e not in r.row:
                continue
            lacks = r.lacks(e)
            where = f"{r.spec['title']}, {r.threads} thread{'s' * (r.threads > 1)}, {TITLES[e]}"
            if lacks:
                bad.append(f"- {where}: {lacks}." + (f" {reasons[r.name]}" if r.name in reasons else ""))
            else:
                good.append(f"- {where}: {ratio_text(r.ratios(e))}")
    bad += scaling(all_rows) + limits(all_rows)
    return ("# Goals reached\n\nSpeed-up over ONNX Runtime / over the fastest peer:\n\n" + ("\n".join(good) or "None yet.") +
            "\n\n# Goals missed\n\n" + ("\n".join(bad) or "None.") + "\n")


def scaling(all_rows):
    by, out = {(r.name, r.threads): r for r in all_rows}, []
    for (name, t), r in by.items():
        two = by.get((name, 2))
        for e in OURS:
            if t == 1 and two and e in r.times and e in two.times and r.times[e] > 5 and r.times[e] / two.times[e] < 1.8:
                out.append(f"- {r.spec['title']}, {TITLES[e]}: two threads are {r.times[e] / two.times[e]:.2f}x one, goal 1.8x.")
    return out


def limits(all_rows):
    """Compile time, code size and start-up time of every network, compared with their goals."""
    out = []
    for r in all_rows:
        for e in OURS:
            v = r.row.get(e, {})
            where = f"- {r.spec['title']}, {r.threads} thread{'s' * (r.threads > 1)}, {TITLES[e]}"
            if v.get("build_s", 0) > 30 and e == "ingot-gcc":
                out.append(f"{where}: built in {v['build_s']:.0f} s, goal 30 s.")
            if v.get("code_bytes", 0) > 150e3:
                out.append(f"{where}: {v['code_bytes'] / 1e3:.0f} KB of code, goal 150 KB.")
    return out


def accuracy(all_rows):
    body = []
    for r in all_rows:
        if r.threads == 1 and any("vs_double_rel" in v for v in r.row.values() if isinstance(v, dict)):
            body.append([r.spec["title"], *[f"{r.row[e]['vs_double_rel']:.1e}" if "vs_double_rel" in r.row.get(e, {}) else "" for e in PEERS + OURS]])
    if not body:
        return ""
    return ("## Accuracy\n\nLargest difference from the same network in double precision (bench/exact.py), divided by the largest output.\n\n" +
            table(["network", *[TITLES[e] for e in PEERS + OURS]], body))


def sizes(all_rows):
    body = []
    for r in all_rows:
        v = r.row.get("ingot-gcc", {})
        if r.threads == 1 and "code_bytes" in v:
            ort = r.row.get("ort", {})
            body.append([r.spec["title"], f"{v['code_bytes'] / 1e3:.0f}", f"{v['const_bytes'] / 1e6:.2f}", f"{v['arena_bytes'] / 1e6:.2f}", f"{v['rss_kb'] / 1e3:.1f}",
                         f"{v['start_us'] / 1e3:.2f}", f"{v['build_s']:.1f}", f"{ort['rss_kb'] / 1e3:.0f}" if "rss_kb" in ort else "",
                         f"{ort['start_us'] / 1e3:.0f}" if "start_us" in ort else ""])
    if not body:
        return ""
    return ("## Size, memory, start-up\n\nCode is machine code without weights. Start is the time from main to the first result, including reading the weights.\n"
            "For ONNX Runtime it is the time from before its import to the first result, and its memory includes Python.\n\n" +
            table(["network", "code, KB", "weights, MB", "arena, MB", "peak memory, MB", "start, ms", "build, s", "ORT memory, MB", "ORT start, ms"], body))


def micro(results):
    body, engines = [], ("ort", "ort-exact", "openvino", "mnn", *OURS)
    found = [k for k in results if k.startswith("micro:")]
    engines = [e for e in engines if any(e in results[k] for k in found)]
    for k in found:
        row, cells = results[k], []
        for e in engines:
            v = row.get(e, {})
            if "gflops" in v:
                rate = f"{100 * v['gflops'] / row['peak'][0]:.0f} %" if row["macs"] else f"{v['gbps']:.0f} GB/s"
                cells.append(f"{number(1e3 * v['min_ms'])} us" + ("" if row["family"] == "trees" else f", {rate}"))
            else:
                cells.append("refused" if v else "")
        body.append([k[6:].split("/")[0], row["family"], k.split("/")[1], *cells])
    if not body:
        return ""
    return ("## Single layers\n\nMinimum times with warm weights, and percent of the multiply-add peak with direct convolution (Winograd may exceed 100), or GB/s of the bytes "
            "that must be touched.\nTrees: 30 features; trees x leaves, d: depth if grown by levels, @: rows.\n\n" + table(["layer", "family", "threads", *[TITLES[e] for e in engines]], body))


# ---- picture ----

def picture(all_rows):
    """Bars: speed-up over the best peer with one and two threads, for the better of gcc and clang."""
    by = {}
    for r in all_rows:
        got = [r.ratios(e)[1] for e in OURS if r.ratios(e)]
        if got:
            by.setdefault(r.name, {})[r.threads] = (max(got), r.spec)
    left, wide, step = 250, 560, 30
    height = 60 + step * len(by)
    top = max([v[0] for t in by.values() for v in t.values()] + [2.0])
    at = lambda x: left + wide * math.log2(max(x, 1 / 16) * 16) / math.log2(max(top, 2.0) * 16)  # noqa: E731
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide + 60}" height="{height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="18">speed compared with the fastest peer (logarithmic): dark 1 thread, light 2 threads; red line: 1x</text>']
    for i, (name, bars) in enumerate(by.items()):
        y = 34 + step * i
        out.append(f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{next(iter(bars.values()))[1]["title"].split(",")[0]}</text>')
        for t, (x, _) in sorted(bars.items()):
            out.append(f'<rect x="{left}" y="{y + 11 * (t - 1)}" width="{max(1, at(x) - left):.0f}" height="10" fill="{"#1f5f8b" if t == 1 else "#8fc1e3"}"/>'
                       f'<text x="{at(x) + 4:.0f}" y="{y + 9 + 11 * (t - 1)}" font-size="10">{x:.2f}x</text>')
    out.append(f'<line x1="{at(1):.0f}" y1="26" x2="{at(1):.0f}" y2="{height - 10}" stroke="#c0392b"/></svg>')
    return "\n".join(out) + "\n"


def other_machine(name, results, all_rows):
    """One table: times of ONNX Runtime and ingot by number of threads, and the speed-up over one thread of the same engine."""
    counts, m = sorted({r.threads for r in all_rows}), results["machine"]
    by, body = {(r.name, r.threads): r for r in all_rows}, []
    for r in all_rows:
        if r.threads != counts[0] or "ingot-gcc" not in r.times or "ort" not in r.times:
            continue
        line = [r.spec["title"]]
        for t in counts:
            x = by.get((r.name, t))
            if not x or "ort" not in x.times or "ingot-gcc" not in x.times:
                line += ["", "", ""]
                continue
            line += [number(x.times["ort"]), number(x.times["ingot-gcc"]) + (f" ({r.times['ingot-gcc'] / x.times['ingot-gcc']:.1f}x)" if t > counts[0] else ""),
                     f"{x.times['ort'] / x.times['ingot-gcc']:.2f}x"]
        body.append(line)
    means = []
    for t in counts:
        ratios = [x.times["ort"] / x.times["ingot-gcc"] for (_, n), x in by.items()
                  if n == t and x.times.get("ort", 0) >= SHORTEST_MS and "ingot-gcc" in x.times]
        if ratios:
            means.append(f"{t} thread{'s' * (t > 1)}, the {len(ratios)} networks that take ONNX Runtime at least {SHORTEST_MS} ms: median "
                         f"{statistics.median(ratios):.2f}x ONNX Runtime, geometric mean {geometric(ratios):.2f}x, minimum {min(ratios):.2f}x.")
    head = ["network"] + [h for t in counts for h in (f"ORT, {t}T", f"ingot, {t}T", "ratio")]
    return (f"# Networks compared with ONNX Runtime: {name}\n\nWritten by `bench/report.py --machine {name} RESULTS`; do not edit.\nMeasured there by `bench/peers.py "
            f"--engines ort,ingot-gcc --threads {','.join(map(str, counts))}`.\n\n{m['cpu']}, {m['cores']} cores; {m.get('gcc', 'gcc')}.\nMilliseconds, medians of a few "
            f"alternating blocks; in brackets the speed-up over one thread.\n\n" + table(head, body) + "\n" + "\n\n".join(means) + "\n")


def held(results, all_rows):
    return ("# Networks on AVX2 only\n\nWritten by `bench/report.py --held`; do not edit.\n`bench/peers.py --held` hides AVX-512 and VNNI from all engines on a CPU that "
            "has them: bench/held.c answers CPUID for copies of the peers' libraries, so they select their AVX2 kernels.\n\n"
            + methods(results, all_rows) + "\n" + whole(results, all_rows, 1) + whole(results, all_rows, 2))


def main():
    import nets
    if sys.argv[1:] == ["--held"]:
        with open(RESULTS.replace(".json", "-held.json")) as f:
            results = json.load(f)
        doc.write("networks-avx2.md", held(results, rows(results, nets)))
        return
    if sys.argv[1:2] == ["--machine"]:
        with open(sys.argv[3]) as f:
            results = json.load(f)
        counts = sorted({int(k.split("/")[1]) for k in results if "/" in k})
        doc.write(f"networks-{sys.argv[2]}.md", other_machine(sys.argv[2], results, rows(results, nets, counts)))
        return
    results = load()
    all_rows = rows(results, nets)
    parts = ["# Networks compared with ONNX Runtime, OpenVINO and MNN\n\nWritten by `make bench`; do not edit.\n\n![speed compared with the fastest peer](networks.svg)\n",
             methods(results, all_rows), whole(results, all_rows, 1), whole(results, all_rows, 2), accuracy(all_rows), sizes(all_rows), micro(results)]
    doc.write("networks.md", "\n".join(p for p in parts if p))
    doc.write("networks.svg", picture(all_rows))
    with open(GOALS, "w") as f:
        f.write(reached(all_rows))
    print(os.path.relpath(GOALS, ROOT))


if __name__ == "__main__":
    import peers
    peers.enter_venv()
    main()

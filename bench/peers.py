#!/usr/bin/env python3
"""Compares ingot with ONNX Runtime, OpenVINO and MNN on whole networks.

    bench/peers.py [--only NAME,..] [--engines ort,openvino,mnn,ingot-gcc,ingot-clang] [--threads 1,2] [--quick] [--held] [--list]

Every engine runs in its own process with the same inputs. The engines take turns of a few hundred milliseconds, each after 50 ms of
idle time. A signal stops all other engines, so that their spinning threads cannot disturb. Figures are medians and minima over all
turns of one run. Outputs are compared with those of ONNX Runtime (of the first engine that takes the network) as it is measured (its default, which saturates sums of products of bytes on CPUs without
VNNI; int8 networks are measured with its exact setting too, ort-exact), and with numpy in double where bench/exact.py knows the operators.
Results are kept in build/bench/results.json (a later run replaces the rows it measures, with all their engines); bench/report.py makes a document of them.
--held: all of them without AVX-512 (bench/held.py); results in build/bench/results-held.json.
"""
import argparse
import ctypes
import fnmatch
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import sysconfig
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUILD = os.path.join(ROOT, "build")
VENV = os.path.join(BUILD, "bench-venv")
PYTHON = os.path.join(VENV, "bin", "python")
INGOT = os.environ.get("INGOT", os.path.join(BUILD, "ingot"))
RESULTS = os.path.join(BUILD, "bench", "results.json")
ALL = ("ort", "openvino", "mnn", "ingot-gcc", "ingot-clang")
QUIET = 0.05
DTYPES = {"f32": "float32", "f64": "float64", "i64": "int64", "i32": "int32", "u8": "uint8", "i8": "int8", "bool": "bool"}


def ensure_venv():
    """Creates the environment of the peers. Each package is installed alone, so a missing one costs only its engine."""
    mark = os.path.join(VENV, "requirements.txt")
    want = os.path.join(HERE, "requirements.txt")
    with open(want) as f:
        text = f.read()
    if os.path.exists(mark) and open(mark).read() == text:
        return
    print("bench: Python environment in build/bench-venv", file=sys.stderr)
    if not os.path.exists(PYTHON):
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    for line in text.splitlines():
        if line and line[0] != "#":
            got = subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", line], stderr=subprocess.PIPE, text=True)
            if got.returncode:
                print(f"bench: {line} cannot be had: {(got.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
    shutil.copy(want, mark)


def enter_venv():
    """Restarts this script in that environment."""
    ensure_venv()
    if os.path.realpath(sys.prefix) != os.path.realpath(VENV):
        os.execv(PYTHON, [PYTHON, *sys.argv])


def die_with_parent():
    """Runs in the child: without it, a stopped process would outlive a parent that is killed."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        pass


class Refused(Exception):
    pass


class Child:
    """One engine on one model: a process that answers requests and is stopped between its turns."""

    def __init__(self, name, argv, names=None, env=None):
        self.name, self.times, self.each = name, [], 1
        self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1,
                                  preexec_fn=die_with_parent, env=env)
        line = self.p.stdout.readline()
        if not line:
            raise Refused(f"ended with status {self.p.wait()}")
        if line[0] == "{":
            self.facts = json.loads(line)
            if "refused" in self.facts:
                self.p.wait()
                raise Refused(self.facts["refused"])
        else:
            start, rss = line.split()
            self.facts = {"start_us": float(start), "rss_kb": int(rss), "names": names}
        self.stop()

    def stop(self):
        self.p.send_signal(signal.SIGSTOP)

    def ask(self, text):
        self.p.send_signal(signal.SIGCONT)
        try:
            self.p.stdin.write(text + "\n")
            line = self.p.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Refused(f"ended with status {self.p.wait()} in the middle")
        self.stop()
        return line

    def block(self, ms):
        time.sleep(QUIET)
        return [float(t) for t in self.ask(f"run {ms} {self.each}").split()]

    def close(self):
        self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        self.p.stdout.close()


# ---- ingot ----

def defines(header):
    with open(header) as f:
        return dict(re.findall(r"^#define \w+?_(ARENA_BYTES|WEIGHT_BYTES|INPUTS|OUTPUTS|(?:IN|OUT)PUT\d+_(?:NAME|TYPE|SHAPE)) (.*)$", f.read(), re.M))


def compile_ingot(model, cc, threads, flags, ingot=INGOT, tag=""):
    """(library, header facts, seconds) of a model by `ingot build`; reused unless ingot or the model is newer. tag: name of a version."""
    folder = os.path.join(BUILD, "bench", "ingot")
    os.makedirs(folder, exist_ok=True)
    name = re.sub(r"\W", "_", os.path.basename(model)[:-5])
    base = os.path.join(folder, f"{name}-{cc}-{threads}{tag}")
    lib, note = base + ".a", base + ".json"
    march = [] if "--march" in flags else ["--march", "native"]
    cmd = [ingot, "build", model, "-o", lib, "--name", name, "--quiet", "--no-selftest", "-O3", *march, "--cc", cc, *flags]
    if threads > 1:
        cmd += ["--threads", str(threads)]
    if os.path.exists(note) and os.path.getmtime(note) > max(os.path.getmtime(ingot), os.path.getmtime(model)):
        with open(note) as f:
            old = json.load(f)
        if old["cmd"] == cmd:
            return lib, old
    start = time.perf_counter()
    got = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    seconds = time.perf_counter() - start
    if got.returncode:
        raise Refused(f"ingot build: exit {got.returncode}: {(got.stdout.strip().splitlines() or ['?'])[0][:200]}")
    facts = {"cmd": cmd, "build_s": seconds, "flags": cmd[cmd.index("-O3"):], "name": name, "header": base + ".h"}
    size = subprocess.run(["size", "-A", lib], stdout=subprocess.PIPE, text=True).stdout
    facts["code_bytes"] = sum(int(n) for n in re.findall(r"^\.text\S*\s+(\d+)", size, re.M))
    with open(note, "w") as f:
        json.dump(facts, f)
    return lib, facts


def start_ingot(engine, model, feed, threads, flags=(), ingot=INGOT, tag=""):
    """A process of the compiled model around bench/turns.c."""
    import numpy as np
    cc = engine.split("-")[1]
    if not shutil.which(cc):
        raise Refused(f"{cc} is not installed")
    lib, facts = compile_ingot(model, cc, threads, list(flags), ingot, tag)
    d = defines(facts["header"])
    nin, nout = int(d["INPUTS"]), int(d["OUTPUTS"])

    def what(side, i):
        shape = [int(x) for x in re.findall(r"\d+", d.get(f"{side}{i}_SHAPE", ""))]
        return d[f"{side}{i}_NAME"].strip('"'), DTYPES[d[f"{side}{i}_TYPE"].strip('"')], shape

    ins, outs = [what("INPUT", i) for i in range(nin)], [what("OUTPUT", i) for i in range(nout)]
    sizes = [[int(np.prod(s)) * np.dtype(t).itemsize for _, t, s in part] for part in (ins, outs)]
    with open(facts["header"]) as f:
        header = f.read()
    seed = ["7"] if re.search(rf"{facts['name']}_run\(void \*arena, uint64_t seed", header) else []
    args = ", ".join(["arena"] + seed + [f"in[{i}]" for i in range(nin)] + [f"out[{i}]" for i in range(nout)])
    prog = lib[:-2]
    with open(prog + ".glue.h", "w") as f:
        f.write(f'#include "{facts["header"]}"\n#define ARENA {d["ARENA_BYTES"]}\n#define NIN {nin}\n#define NOUT {nout}\n'
                f'#define IN_BYTES {", ".join(map(str, sizes[0] or [0]))}\n#define OUT_BYTES {", ".join(map(str, sizes[1]))}\n'
                f'#define CALL {facts["name"]}_run({args})\n')
        first = [f"{facts['name']}_reset(arena)"] if f"{facts['name']}_reset(" in header else []  # models with state start from it
        if threads > 1:
            first.append(f'{facts["name"]}_threads_start(arena, {threads})')
        if first:
            f.write(f"#define START {', '.join(first)}\n")
    got = subprocess.run([cc, "-O2", "-include", prog + ".glue.h", os.path.join(HERE, "turns.c"), lib, "-o", prog, "-lm", "-lpthread"],
                         stderr=subprocess.PIPE, text=True)
    if got.returncode:
        raise Refused(f"{cc}: {got.stderr.splitlines()[0]}")
    with open(prog + ".in", "wb") as f:
        for name, dtype, _ in ins:
            f.write(np.ascontiguousarray(feed[name], dtype).tobytes())
    c = Child(engine, [prog, prog + ".in", prog + ".out"], [o[0] for o in outs])
    version = subprocess.run([ingot, "--version"], stdout=subprocess.PIPE, text=True).stdout.strip() or "ingot"
    c.facts.update(version=version, settings="ingot build " + " ".join(facts["flags"]), build_s=facts["build_s"],
                   code_bytes=facts["code_bytes"], arena_bytes=int(d["ARENA_BYTES"]), const_bytes=int(d["WEIGHT_BYTES"]))
    c.outs, c.outfile = outs, prog + ".out"
    return c


def outputs(c):
    """Arrays by name, from one more request."""
    import numpy as np
    if c.name.startswith("ingot"):
        c.ask("out")
        with open(c.outfile, "rb") as f:
            return {n: np.frombuffer(f.read(int(np.prod(s)) * np.dtype(t).itemsize), t).reshape(s) for n, t, s in c.outs}
    path = os.path.join(BUILD, "bench", f"out-{os.getpid()}.npz")
    c.ask("out " + path)
    with np.load(path) as z:
        got = {k: z[k] for k in z.files}
    os.remove(path)
    return got


def difference(a, b):
    """(largest absolute difference, the same divided by the largest magnitude of b or 0.01) over the common outputs; None: there are none."""
    import numpy as np
    worst, scale, seen = 0.0, 0.0, 0
    for k in b:
        if k not in a or np.size(a[k]) != np.size(b[k]):
            return None
        x, y = np.asarray(a[k], np.float64).ravel(), np.asarray(b[k], np.float64).ravel()
        seen += 1
        worst = max(worst, float(np.abs(x - y).max(initial=0)))
        scale = max(scale, float(np.abs(y).max(initial=0)))
    return (worst, worst / max(scale, 1e-2)) if seen else None


# ---- one row ----

def start(engine, model, inputs, feed, threads, flags, env):
    if engine.startswith("ingot"):
        return start_ingot(engine, model, feed, threads, flags, tag="-held" if env else "")
    return Child(engine, [PYTHON, os.path.join(HERE, "engines.py"), engine, model, inputs, str(threads)], env=env)


def take_turns(children, rounds, ms, refused):
    """Runs blocks in turn; each round begins with another engine."""
    for r in range(-1, rounds):
        for i in range(len(children)):
            c = children[(i + max(r, 0)) % len(children)]
            if c.name in refused:
                continue
            try:
                got = c.block(ms if r >= 0 else ms / 4)
            except Refused as e:
                refused[c.name] = str(e)
                continue
            if r < 0:
                c.each = max(1, min(1000, round(20 / min(got))))
            else:
                c.times += got


def measure(model, threads, engines, rounds, ms, flags=(), truth=None, env=None):
    """One row: {engine: {min_ms, median_ms, ...} or {refused}}. env: environment of the peers' processes, None: this one."""
    import numpy as np
    inputs = model[:-5] + ".npz"
    with np.load(inputs) as z:
        feed = {k: z[k] for k in z.files}
    children, refused, row = [], {}, {}
    try:
        for e in engines:
            try:
                children.append(start(e, model, inputs, feed, threads, flags, env))
            except (Refused, OSError, subprocess.TimeoutExpired) as x:
                refused[e] = str(x)[:300]
        take_turns(children, rounds, ms, refused)
        base = None
        for c in children:
            if c.name in refused:
                continue
            got = outputs(c)
            base = got if base is None else base  # ONNX Runtime is the first, unless it refuses
            row[c.name] = {"min_ms": min(c.times) / 1e3, "median_ms": statistics.median(c.times) / 1e3, "samples": len(c.times),
                           "runs_per_sample": c.each, **{k: v for k, v in c.facts.items() if k != "names"}}
            for key, against in (("vs_ort", base), ("vs_double", truth)):
                d = difference(got, against) if against else None
                if d:
                    row[c.name][key], row[c.name][key + "_rel"] = d
    finally:
        for c in children:
            c.close()
    row.update({e: {"refused": why} for e, why in refused.items()})
    return row


def in_double(model):
    """The outputs by bench/exact.py, stored next to the model; None if it lacks an operator."""
    import exact
    import numpy as np
    path = model[:-5] + ".exact.npz"
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(model):
        with np.load(model[:-5] + ".npz") as z:
            feed = {k: z[k] for k in z.files}
        try:
            np.savez(path, **exact.run(model, feed))
        except KeyError as e:
            print(f"    no float64 result: {e}")
            return None
    with np.load(path) as z:
        return {k: z[k] for k in z.files}


# ---- results ----

def machine():
    cpu = "unknown"
    try:
        with open("/proc/cpuinfo") as f:
            cpu = re.search(r"model name\s*:\s*(.*)", f.read()).group(1)
    except (OSError, AttributeError):
        pass
    versions = {}
    for cc in ("gcc", "clang"):
        if shutil.which(cc):
            versions[cc] = subprocess.run([cc, "--version"], stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.platform(), "load": os.getloadavg()[0], **versions}


def keep(path, rows):
    old = {}
    if os.path.exists(path):
        with open(path) as f:
            old = json.load(f)
    old.update(rows)  # replace whole rows: ratios are valid only within one run
    with open(path + ".tmp", "w") as f:
        json.dump(old, f, indent=1)
    os.replace(path + ".tmp", path)


def text(e, r):
    if r is None:
        return f"{e} -"
    if "refused" in r:
        return f"{e} refused ({r['refused'][:90]})"
    more = f" err {r['vs_double_rel']:.1e}" if "vs_double_rel" in r else ""
    more += f" diff {r['vs_ort_rel']:.1e}" if "vs_ort_rel" in r and e != "ort" else ""
    return f"{e} {r['median_ms']:.4g} (min {r['min_ms']:.4g}){more}"


def show(name, threads, row, engines):
    print(f"{name} {threads}T: " + "; ".join(text(e, row.get(e)) for e in engines), flush=True)
    good = {e: row[e]["median_ms"] for e in engines if "median_ms" in row.get(e, {})}
    peers = [t for e, t in good.items() if not e.startswith("ingot")]
    for e in good:
        if e.startswith("ingot") and peers:
            ort = f"{good['ort'] / good[e]:.2f}x ORT, " if "ort" in good else ""
            print(f"    {e}: {ort}{min(peers) / good[e]:.2f}x best", flush=True)


def chosen(only, error):
    """The networks named by --only, or all."""
    import nets
    if not only:
        return nets.ORDER
    parts = only.split(",")
    names = [n for n in nets.ORDER if any(fnmatch.fnmatch(n, q) for q in parts)]
    for q in parts:
        if not any(fnmatch.fnmatch(n, q) for n in names):
            error(f"no network is called {q}; --list names them")
    return names


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--only", help="names of networks, or parts of them with *")
    p.add_argument("--engines", default=",".join(ALL))
    p.add_argument("--threads", default="1,2")
    p.add_argument("--quick", action="store_true", help="three blocks of 100 ms each instead of eight of 300")
    p.add_argument("--rounds", type=int)
    p.add_argument("--block", type=float, help="milliseconds of a block")
    p.add_argument("--flags", default="", help="more words for `ingot build`")
    p.add_argument("--no-double", action="store_true", help="do not compare with double")
    p.add_argument("--held", action="store_true", help="without AVX-512, whatever the machine has")
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    enter_venv()
    import nets
    names = chosen(a.only, p.error)
    if a.list:
        print("\n".join(f"{n:16} {nets.NETS[n]['title']}" for n in names))
        return
    engines = a.engines.split(",")
    rounds, ms = (a.rounds or 3, a.block or 100) if a.quick else (a.rounds or 8, a.block or 300)
    info, flags, env, results = machine(), a.flags.split(), None, RESULTS
    if a.held:
        import held
        held.make(sysconfig.get_path("purelib"))
        flags, env, results = [*flags, "--march", "avx2"], held.environment(), RESULTS.replace(".json", "-held.json")
        info["cpu"] += " without AVX-512"
    print(f"{info['cpu']}, {info['cores']} cores, load {info['load']:.1f}; {rounds} blocks of {ms:g} ms each; milliseconds")
    for name in names:
        try:
            model = nets.make(name)
        except FileNotFoundError as e:
            print(f"{name}: {e}")
            continue
        truth = None if a.no_double else in_double(model)
        with open(model[:-5] + ".json") as f:
            facts = json.load(f)
        for t in (int(x) for x in a.threads.split(",")):
            exact = nets.NETS[name].get("int8") and "ort" in engines
            beside = [*engines, "ort-exact"] if exact else engines
            row = measure(model, t, beside, rounds, ms, flags, truth, env)
            show(name, t, row, beside)
            keep(results, {f"{name}/{t}": {**row, "macs": facts["macs"], "weight_bytes": facts["weight_bytes"]}, "machine": info})


if __name__ == "__main__":
    main()

"""Runs the libFuzzer targets, test/fuzz/fuzz_*.c.

    fuzz.py [--runs N | --seconds S] [--seed N] [--workers N] [TARGET...]

is a campaign: processes with different seeds, new ones every time unless given, share the growing corpus
build-fuzz/corpus/TARGET. One that did fewer runs than asked fails, so that a fuzzer that dies at its start does not look
green. A finding is left in build-fuzz/TARGET-*; once mended, it is kept as a small file in test/fuzz/TARGET, which every
campaign and every `make test` replays first.

`smoke` is the part of `make test`: the kept findings, then a number of runs that depends on the program alone: a fixed
seed, the seeds of test/fuzz/seeds.py in one order, nothing written, and no look at compared values, for some are addresses.
"""
import argparse
import os
import random
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD, SMOKE = (os.path.join(ROOT, x) for x in ("build-fuzz", "build-asan"))  # of campaigns; of `make test`
FLAGS = ["-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-print_final_stats=1", "-verbosity=0"]
LEAST_PER_SECOND = 50


def targets():
    folder = os.path.join(ROOT, "test", "fuzz")
    return sorted(n[:-2] for n in os.listdir(folder) if n.endswith(".c")) if os.path.isdir(folder) else []


def files(folder):
    return [os.path.join(folder, n) for n in sorted(os.listdir(folder))] if os.path.isdir(folder) else []


def kept(target):
    """Findings of former campaigns."""
    return files(os.path.join(ROOT, "test", "fuzz", target))


def seeds(build, target):
    """Folder and dictionary, made anew by seeds.py where the Python environment is there; else neither need exist."""
    top = os.path.join(build, "seeds")
    python = os.path.join(ROOT, "build", "venv", "bin", "python")
    if os.path.exists(python):
        subprocess.run([python, os.path.join(ROOT, "test", "fuzz", "seeds.py"), top, target], check=False,
                       stdout=subprocess.DEVNULL)
    words = os.path.join(top, target + ".dict")
    return os.path.join(top, target), words if os.path.exists(words) and os.path.getsize(words) else None


def command(build, target, words, seed, runs):
    return [os.path.join(build, "fuzz", target), *FLAGS, f"-seed={seed}", f"-artifact_prefix={build}/{target}-", f"-runs={runs}",
            *([f"-dict={words}"] if words else [])]


def start(cmd):
    return subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT)


def finish(job):
    """Runs done, and None or the end of the report of a finding."""
    text = job.communicate()[1].decode("utf-8", "replace")
    m = re.search(r"number_of_executed_units: (\d+)", text)
    return int(m[1]) if m else 0, explain(text) if job.returncode else None


def explain(text):
    """The report from its first line on: what was found, and the calls that led there."""
    m = re.search(r"^.*(runtime error:|ERROR: |not read back|fuzz_import: |: deadly signal)", text, re.M)
    return text[m.start():][:3000] if m else text[-3000:]


def replay(build, target):
    """None, or the report of a kept finding that is one again. libFuzzer runs files that are named once each."""
    old = kept(target)
    return finish(start([os.path.join(build, "fuzz", target), *FLAGS, *old]))[1] if old else None


def smoke(target, runs):
    """Runs done, and None or the report of a finding."""
    finding = replay(SMOKE, target)
    if finding:
        return 0, finding
    folder, words = seeds(SMOKE, target)
    names = os.path.join(SMOKE, target + ".seeds")
    with open(names, "w") as f:
        f.write(",".join([*kept(target), *files(folder)]))
    return finish(start([*command(SMOKE, target, words, 1, runs), "-timeout=60", "-use_cmp=0", "-reload=0", f"-seed_inputs=@{names}"]))


def campaign(target, runs, seconds, workers, seed):
    """Runs done, and None or the report of a finding."""
    finding = replay(BUILD, target)
    if finding:
        return 0, finding
    folder, words = seeds(BUILD, target)
    corpus = os.path.join(BUILD, "corpus", target)
    for path in (corpus, folder):
        os.makedirs(path, exist_ok=True)
    more = ["-timeout=30", "-reload=1", corpus, folder]
    more += [f"-max_total_time={seconds}"] if seconds else []
    jobs = [start([*command(BUILD, target, words, seed + k, -1 if seconds else runs // workers), *more]) for k in range(workers)]
    done = 0
    for job in jobs:
        n, found = finish(job)
        done, finding = done + n, finding or found
    return done, finding


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--runs", type=int, default=10000000)
    ap.add_argument("--seconds", type=int, default=0)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1 << 31))
    ap.add_argument("target", nargs="*")
    args = ap.parse_args()
    status = 0
    for target in args.target or targets():
        done, finding = campaign(target, args.runs, args.seconds, args.workers, args.seed)
        least = args.seconds * LEAST_PER_SECOND if args.seconds else args.runs
        if finding:
            print(finding)
        word = "FINDING" if finding else "too few" if done < least else "ok"
        status |= word != "ok"
        print(f"{target}: {done} runs, {word} (--seed {args.seed})", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())

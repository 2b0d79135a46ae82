"""Runs the libFuzzer targets (test/fuzz/fuzz_*.c, built by `make fuzz-programs`): fuzz.py --runs N | --seconds S [TARGET...]

Two processes share a corpus in build-fuzz/corpus/TARGET, which test/fuzz/seeds.py has begun. A campaign that did fewer runs
than asked fails, so that a fuzzer that dies at its start does not look green. Findings are left in build-fuzz/TARGET-*.
"""
import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build-fuzz")
FLAGS = ["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-print_final_stats=1", "-verbosity=0", "-reload=1"]
LEAST_PER_SECOND = 50


def targets():
    folder = os.path.join(ROOT, "test", "fuzz")
    return sorted(n[:-2] for n in os.listdir(folder) if n.endswith(".c")) if os.path.isdir(folder) else []


def seed(target):
    """Corpus folder of a target, begun from the seeds where the Python environment is there."""
    corpus = os.path.join(BUILD, "corpus", target)
    python = os.path.join(ROOT, "build", "venv", "bin", "python")
    if not os.path.exists(corpus) and os.path.exists(python):
        subprocess.run([python, os.path.join(ROOT, "test", "fuzz", "seeds.py")], check=False, stdout=subprocess.DEVNULL)
    os.makedirs(corpus, exist_ok=True)
    return corpus


def campaign(target, runs, seconds, workers, number=1):
    """Runs done, and None or the report of a finding."""
    corpus = seed(target)
    words = os.path.join(BUILD, "corpus", target + ".dict")
    jobs = []
    for k in range(workers):
        cmd = [os.path.join(BUILD, target), corpus, *FLAGS, f"-seed={number + k}",
               f"-artifact_prefix={BUILD}/{target}-", f"-runs={-1 if seconds else runs // workers}"]
        cmd += [f"-max_total_time={seconds}"] if seconds else []
        cmd += [f"-dict={words}"] if os.path.exists(words) and os.path.getsize(words) else []
        jobs.append(subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=BUILD))
    done, finding = 0, None
    for job in jobs:
        text = job.communicate()[1].decode("utf-8", "replace")
        m = re.search(r"number_of_executed_units: (\d+)", text)
        done += int(m[1]) if m else 0
        if job.returncode:
            finding = text[-3000:]
    return done, finding


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--runs", type=int, default=10000000)
    ap.add_argument("--seconds", type=int, default=0)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("target", nargs="*")
    args = ap.parse_args()
    status = 0
    for target in args.target or targets():
        done, finding = campaign(target, args.runs, args.seconds, args.workers)
        least = args.seconds * LEAST_PER_SECOND if args.seconds else args.runs
        if finding:
            print(finding)
        word = "FINDING" if finding else "too few" if done < least else "ok"
        status |= word != "ok"
        print(f"{target}: {done} runs, {word}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())

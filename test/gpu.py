"""The official ONNX cases on engine cuda, on a machine with a GPU: test/gpu.py [--jobs N] [--every N] [NAME...]

In: build/official/cases.json, which `make test` writes. A case passes when `ingot verify --engine cuda` accepts its
expected outputs within the tolerances of test/onnx/list.txt. It is refused with exit code 3. Prints a line for every
case that does neither, then the counts; exit code 1 if there is one. NAME: only cases whose name contains it.
"""
import argparse
import concurrent.futures
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.core import ROOT, run, tail
from suite import official

LIMIT = 120  # seconds per case


def check(ingot, case, table):
    """pass, refused or the message of what went wrong"""
    got = run([ingot, "verify", case["model"], "--data", case["data"], "--engine", "cuda", "-q",
               *official.tolerance(case["name"], table)], LIMIT)
    if got.timed_out:
        return f"longer than {LIMIT} s"
    return {0: "pass", 3: "refused"}.get(got.rc) or f"exit {got.rc}: " + tail(got.out.decode("utf-8", "replace") + got.text(), 3)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--every", type=int, default=1, help="take every N-th case")
    p.add_argument("name", nargs="*")
    a = p.parse_args()
    build = os.path.join(ROOT, os.environ.get("BUILD", "build"))
    with open(os.path.join(build, "official", "cases.json")) as f:
        cases = [c for c in json.load(f) if not a.name or any(n in c["name"] for n in a.name)][::a.every]
    table, count = official.rules(), {"pass": 0, "refused": 0, "wrong": 0}
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for case, said in zip(cases, pool.map(lambda c: check(os.path.join(build, "ingot"), c, table), cases)):
            state = said if said in count else "wrong"
            count[state] += 1
            if state == "wrong":
                print(f"{case['kind']}/{case['name']}: {said}", flush=True)
            elif state == "refused" and a.name:
                print(f"{case['kind']}/{case['name']}: refused", flush=True)
    print(f"engine cuda: {count['pass']} pass, {count['refused']} refused, {count['wrong']} wrong, of {len(cases)}")
    sys.exit(count["wrong"] > 0)


main()

"""The time that benchmarks take, and the goals that it is compared with.

Other programs make a measurement longer, never shorter. What runs in this process or in a child is therefore measured in processor time, and the
minimum of many turns counts (minima). Engines take turns, round by round, so that they meet the same machine. Engines of several threads, which
compete for cores, are processes that bench/turns.c and bench/peers.py let run in blocks, one at a time: medians of the blocks count.
"""
import math
import resource
import subprocess
import time


class Processor:
    """`with Processor() as used:` sets used.seconds to the CPU time of child processes that end inside."""

    def __enter__(self):
        self.before = self.now()
        return self

    def __exit__(self, *_):
        self.seconds = self.now() - self.before

    @staticmethod
    def now():
        u = resource.getrusage(resource.RUSAGE_CHILDREN)
        return u.ru_utime + u.ru_stime


def child(cmd, **how):
    """(CPU seconds, the finished process) of a command that must succeed; its output is captured as text."""
    with Processor() as used:
        got = subprocess.run(cmd, capture_output=True, text=True, **how)
    if got.returncode:
        raise SystemExit(f"bench: {' '.join(map(str, cmd))}: {got.stderr[-300:]}")
    return used.seconds, got


def minima(runs, rounds, turn=0.0, count=None, clock=time.thread_time, begin=None, end=None):
    """{name: seconds of a run} of {name: function}. Each turn starts with an untimed run, which warms the caches. It has `count` runs, or as
    many as fit in `turn` seconds. begin, end: called before and after a round."""
    best, counts = dict.fromkeys(runs, math.inf), dict.fromkeys(runs, count or 1)
    for number in range(rounds):
        if begin:
            begin()
        for name, run in runs.items():
            run()
            start = clock()
            for _ in range(counts[name]):
                run()
            best[name] = min(best[name], (clock() - start) / counts[name])
            if not number and not count:
                counts[name] = max(1, int(turn / best[name]))
        if end:
            end(best)
    return best


def verdict(what, value, aim, least=True, form=".2f"):
    """Prints one line and returns whether the aim is met. value: None without a measurement. least: value must be at least the aim, otherwise
    at most."""
    met = value is not None and (value >= aim if least else value <= aim)
    got = "not measured" if value is None else format(value, form)
    print(f"{'pass' if met else 'MISS' if value is not None else '-':5} {what}: {got}, at {'least' if least else 'most'} {aim:g}", flush=True)
    return met

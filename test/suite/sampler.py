"""The sampler compared with a simple version in Python: the same tokens for the same seed, and frequencies by chi-square."""
import math
import os
import random
import struct

from lib.core import ROOT, Skip, Test, must, want

MASK = (1 << 64) - 1


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def uniform(state):
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return state, ((z ^ z >> 31) >> 11) * 2.0**-53


def weights(case):
    """[(id, weight)] in the order of drawing; every filter follows its definition."""
    z = dict(enumerate(case["logits"]))
    seen = case["past"][-case["window"]:] if case["window"] else case["past"]
    for t in set(seen):
        if case["repeat"] not in (0, 1):
            z[t] = f32(z[t] * case["repeat"]) if z[t] <= 0 else f32(z[t] / case["repeat"])
        z[t] = f32(f32(z[t] - f32(seen.count(t) * case["frequency"])) - case["presence"])
    order = sorted(z, key=lambda t: (-z[t], t))
    if case["temperature"] <= 0:
        return [(order[0], 1.0)]
    top = z[order[0]]
    if case["top_k"]:
        order = order[:case["top_k"]]
    if case["top_p"] < 1:
        p = [math.exp(z[t] - top) for t in order]
        need, n = case["top_p"] * math.fsum(p), 1
        while n < len(order) and math.fsum(p[:n]) < need:
            n += 1
        order = order[:n]
    if not case["top_k"] or case["top_k"] >= len(z):
        order = order if case["top_p"] < 1 else sorted(order)
    order = [t for t in order if not case["min_p"] or math.exp(z[t] - top) >= case["min_p"]]
    return [(t, math.exp((z[t] - top) / case["temperature"])) for t in order]


def drawn(case):
    table, state, out = weights(case), case["seed"], []
    total = sum(w for _, w in table)
    for _ in range(case["draws"]):
        if case["temperature"] > 0:
            state, u = uniform(state)
            at = 0.0
            for token, w in table:
                at += w
                if u * total < at:
                    break
        else:
            token = table[0][0]
        out.append(token)
    return out


def make(rng, **fixed):
    n = rng.choice([1, 2, 7, 50, 300])
    case = {"temperature": f32(rng.choice([0, 0.3, 0.7, 1, 2])), "top_k": rng.choice([0, 0, 1, 3, 40, 1000]), "top_p": f32(rng.choice([1, 1, 0.9, 0.5, 0.05])),
            "min_p": f32(rng.choice([0, 0, 0.05, 0.3])), "repeat": f32(rng.choice([1, 1, 1.1, 2])), "frequency": f32(rng.choice([0, 0, 0.5])),
            "presence": f32(rng.choice([0, 0, 0.25])), "window": rng.choice([0, 4, 64]), "seed": rng.getrandbits(64), "draws": 20,
            "logits": [f32(rng.gauss(0, 3)) if rng.random() < 0.9 else float(rng.randrange(-2, 3)) for _ in range(n)], "past": [rng.randrange(n) for _ in range(rng.randrange(10))]}
    case.update(fixed)
    return case


def tokens(env, name, cases):
    program = os.path.join(ROOT, "build", "unit", "sample")
    if not os.path.exists(program):
        raise Skip("build/unit is not built")
    path = os.path.join(env.scratch("sampler"), name)
    keys = ("temperature", "top_k", "top_p", "min_p", "repeat", "frequency", "presence", "window", "seed", "draws")
    with open(path, "w") as f:
        for c in cases:
            row = [repr(c[k]) for k in keys] + [str(len(c["logits"])), str(len(c["past"]))] + [repr(x) for x in c["logits"]] + [str(x) for x in c["past"]]
            f.write(" ".join(row) + "\n")
    return [[int(x) for x in line.split()] for line in must([program, path], "sample").split("\n")[:-1]]


def same(env):
    rng = random.Random(1)
    cases = [make(rng) for _ in range(1500)]
    got = tokens(env, "same", cases)
    want(len(got) == len(cases), f"{len(got)} lines for {len(cases)} cases")
    for case, ids in zip(cases, got):
        want(ids == drawn(case), f"{case}: {ids}, expected {drawn(case)}")


def frequencies(env):
    rng = random.Random(2)
    case = make(rng, temperature=1.0, top_k=6, top_p=1.0, min_p=0.0, repeat=1.0, frequency=0.0, presence=0.0, seed=3, draws=20000, past=[],
                logits=[f32(rng.gauss(0, 1)) for _ in range(30)])
    ids = tokens(env, "frequencies", [case])[0]
    table = weights(case)
    total = sum(w for _, w in table)
    chi = sum((ids.count(t) - len(ids) * w / total) ** 2 / (len(ids) * w / total) for t, w in table)
    want(chi < 20.5, f"chi-square {chi:.1f} of 5 degrees of freedom: one in a thousand is above 20.5")


def tests(env):
    return [Test("sampler/same", lambda: same(env)), Test("sampler/frequencies", lambda: frequencies(env))]

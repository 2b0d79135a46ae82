"""Generates tree ensembles like those of gradient boosting and random forests, for bench/micro.py.

Trees are grown on random samples as LightGBM grows them, the largest leaf split first, or level by level down to a depth. Splits are at
random features and random places between the samples of a leaf, so that some branches become long; half of the nodes send NaN to the left.
"""
import numpy as np

FEATURES, SAMPLES = 30, 2000
KEYS = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")


def tree(rng, number, leaves, depth, node, leaf):
    """Appends the nodes of a tree to the lists `node`, (tree, node) of its leaves to `leaf`."""
    x = rng.standard_normal((SAMPLES, FEATURES), np.float32)
    parts, level, split = {0: x}, {0: 0}, {}
    while len(parts) < leaves:
        able = [k for k in parts if len(parts[k]) > 1 and level[k] < depth]
        if not able:
            break
        at = max(able, key=lambda k: len(parts[k])) if depth > 60 else min(able, key=lambda k: level[k])
        feature = int(rng.integers(FEATURES))
        limit = float(np.quantile(parts[at][:, feature], rng.uniform(0.1, 0.9), method="lower"))
        left = parts[at][:, feature] <= limit
        split[at] = (feature, limit, len(level))
        for side in (left, ~left):
            parts[len(level)], level[len(level)] = parts[at][side], level[at] + 1
        del parts[at]
    for at in range(len(level)):
        feature, limit, child = split.get(at, (0, 0.0, 0))
        inner = at in split
        row = (number, at, feature, limit, "BRANCH_LEQ" if inner else "LEAF", child, child + inner, int(rng.random() < 0.5))
        for key, v in zip(KEYS, row):
            node[key].append(v)
        if not inner:
            leaf.append((number, at))


def forest(trees, leaves, rows, depth=64):
    """A function that fills a Net."""
    def f(n):
        node, leaf = {k: [] for k in KEYS}, []
        for i in range(trees):
            tree(n.rng, i, leaves, depth, node, leaf)
        weights = [float(w) for w in n.rng.standard_normal(len(leaf)).astype(np.float32)]
        y = n.op("TreeEnsembleRegressor", n.input("x", n.rng.standard_normal((rows, FEATURES), np.float32)), domain="ai.onnx.ml", n_targets=1,
                 target_treeids=[t for t, _ in leaf], target_nodeids=[k for _, k in leaf], target_ids=[0] * len(leaf), target_weights=weights,
                 **{f"nodes_{k}": v for k, v in node.items()})
        n.output(n.op("Reshape", y, n.ints(rows, 1)), "y")
    return f

"""ai.onnx.ml: trees, support vectors, linear models, encoders. Inputs include thresholds themselves and NaN."""
import numpy as np

FEATURES = 4
POSTS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def grow(rng, trees, depth, modes, missing):
    """Nodes of random trees, and (tree, node) of their leaves."""
    node = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = []
    for tree in range(trees):
        todo, count = [(0, 0)], 1
        while todo:
            at, level = todo.pop()
            leaf = level == depth or (level > 1 and rng.random() < .3)
            node["treeids"].append(tree)
            node["nodeids"].append(at)
            node["featureids"].append(0 if leaf else int(rng.integers(FEATURES)))
            node["values"].append(0.0 if leaf else float(rng.integers(-3, 4)) / 2)
            node["modes"].append("LEAF" if leaf else str(rng.choice(modes)))
            node["missing_value_tracks_true"].append(int(missing and rng.random() < .5))
            node["truenodeids"].append(0 if leaf else count)
            node["falsenodeids"].append(0 if leaf else count + 1)
            if leaf:
                leaves.append((tree, at))
            else:
                todo += [(count, level + 1), (count + 1, level + 1)]
                count += 2
    return {f"nodes_{k}": v for k, v in node.items()}, leaves


def weights(rng, prefix, leaves, targets, low, all_of_them=False):
    """Every leaf has a weight for some of the targets."""
    out = {"treeids": [], "nodeids": [], "ids": [], "weights": []}
    for tree, node in leaves:
        some = len(targets) if all_of_them else max(1, int(rng.integers(len(targets) + 1)))
        for t in rng.permutation(targets)[:some]:
            for key, v in zip(out, (tree, node, int(t), float(np.float32(rng.uniform(low, 1))))):
                out[key].append(v)
    return {f"{prefix}_{k}": v for k, v in out.items()}


def shared(M, rng):
    """Categories as converters of LightGBM split them: one test each, and all that hold lead to one subtree."""
    lists = {"treeids": [0] * 7, "nodeids": list(range(7)), "featureids": [0, 0, 0, 1, 0, 0, 0], "values": [1.0, 2.0, 4.0, 0.0, 0.0, 0.0, 0.0],
             "modes": ["BRANCH_EQ"] * 3 + ["BRANCH_LEQ"] + ["LEAF"] * 3, "truenodeids": [3, 3, 3, 5, 0, 0, 0],
             "falsenodeids": [1, 2, 4, 6, 0, 0, 0]}
    nodes = {f"nodes_{k}": v for k, v in lists.items()}
    x = np.stack([np.arange(6), rng.standard_normal(6)], 1).astype(np.float32)
    leaves = [(0, 4), (0, 5), (0, 6)]
    one = weights(rng, "target", leaves, [0], -1, True) | {"n_targets": 1}
    yield M("regressor_shared", "TreeEnsembleRegressor", ["x"], ["y"], {"x": x}, attrs=nodes | one)
    two = weights(rng, "class", leaves, range(3), -1, True) | {"classlabels_int64s": [5, 6, 7]}
    yield M("classifier_shared", "TreeEnsembleClassifier", ["x"], ["l", "s"], {"x": x}, attrs=nodes | two)


def forests(M, rng, rows):
    for number, modes in enumerate((MODES[:1], MODES[:4], MODES)):
        nodes, leaves = grow(rng, 5, 4, modes, number > 0)
        for agg in ("SUM", "AVERAGE", "MIN", "MAX"):
            for targets in (1, 3):
                attrs = nodes | weights(rng, "target", leaves, range(targets), -1) | {"n_targets": targets, "aggregate_function": agg}
                yield M(f"regressor_{number}_{agg}_{targets}", "TreeEnsembleRegressor", ["x"], ["y"], {"x": rows()}, attrs=attrs)
        base = weights(rng, "target", leaves, range(2), -1, True) | {"n_targets": 2, "base_values": [.1, -.2]}
        yield M(f"regressor_{number}_base", "TreeEnsembleRegressor", ["x"], ["y"], {"x": rows()}, attrs=nodes | base)
    nodes, leaves = grow(rng, 6, 4, MODES[:1], True)
    for post in POSTS:
        for low in (-1, 0):
            attrs = nodes | weights(rng, "class", leaves, [0], low) | {"classlabels_int64s": [5, 6], "post_transform": post}
            yield M(f"classifier2_{post}_{low + 1}", "TreeEnsembleClassifier", ["x"], ["l", "s"], {"x": rows()}, attrs=attrs)
        three = weights(rng, "class", leaves, range(3), -1) | {"classlabels_int64s": [5, 6, 7], "post_transform": post}
        yield M(f"classifier3_{post}", "TreeEnsembleClassifier", ["x"], ["l", "s"], {"x": rows()}, attrs=nodes | three)
    named = weights(rng, "class", leaves, range(3), 0) | {"classlabels_strings": ["a", "b", "c"], "base_values": [.1, .2, .3]}
    yield M("classifier_names", "TreeEnsembleClassifier", ["x"], ["l", "s"], {"x": rows()}, attrs=nodes | named)
    for count in (1, 3):  # leaves with several weights for one target
        one, two = (weights(rng, "target", leaves, range(count), -1) for _ in range(2))
        twice = {k: [*one[k], *two[k]] for k in one} | {"n_targets": count}
        yield M(f"regressor_twice_{count}", "TreeEnsembleRegressor", ["x"], ["y"], {"x": rows()}, attrs=nodes | twice)
        one, two = (weights(rng, "class", leaves, range(count), -1) for _ in range(2))
        twice = {k: [*one[k], *two[k]] for k in one} | {"classlabels_int64s": [5, 6, 7][:max(2, count)]}
        yield M(f"classifier_twice_{count}", "TreeEnsembleClassifier", ["x"], ["l", "s"], {"x": rows()}, attrs=nodes | twice)


def ends(M, rng):
    """Thresholds and features without end: every mode alone, with and without NaN that answers yes."""
    far = (np.inf, -np.inf, 0.0, -0.0)
    for mode in MODES:
        nodes, leaves = grow(rng, 13, 4, [mode], True)
        nodes["nodes_values"] = [float(rng.choice(far)) if rng.random() < .3 else v for v in nodes["nodes_values"]]
        x = (rng.integers(-4, 5, (30, FEATURES)) / 2).astype(np.float32)
        x[rng.random(x.shape) < .3] = np.nan
        x[rng.random(x.shape) < .1] = np.inf
        x[rng.random(x.shape) < .1] = -np.inf
        attrs = nodes | weights(rng, "target", leaves, [0], -1, True) | {"n_targets": 1}
        yield M(f"regressor_ends_{mode[7:]}", "TreeEnsembleRegressor", ["x"], ["y"], {"x": x}, attrs=attrs)


def machines(M, rng, rows):
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        common = {"kernel_type": kernel, "kernel_params": [.3, .2, 2.0]}
        for classes in (2, 3, 4):
            per = [3, 2, 4, 2][:classes]
            pairs, total = classes * (classes - 1) // 2, sum(per)
            attrs = common | {"vectors_per_class": per, "support_vectors": list(rng.standard_normal(total * FEATURES)),
                              "coefficients": list(rng.standard_normal((classes - 1) * total)), "rho": list(rng.standard_normal(pairs)),
                              "classlabels_ints": list(range(5, 5 + classes))}
            for chance in (0, 1):
                more = {"prob_a": list(-rng.random(pairs) - .5), "prob_b": list(rng.standard_normal(pairs))} if chance else {}
                yield M(f"svc_{kernel}_{classes}_{chance}", "SVMClassifier", ["x"], ["l", "s"], {"x": rows(nan=False)}, attrs=attrs | more)
        attrs = common | {"n_supports": 5, "support_vectors": list(rng.standard_normal(5 * FEATURES)), "coefficients": list(rng.standard_normal(5)),
                          "rho": [.3]}
        for one in (0, 1):
            yield M(f"svr_{kernel}_{one}", "SVMRegressor", ["x"], ["y"], {"x": rows(nan=False)}, attrs=attrs | {"one_class": one})


def linear(M, rng, rows):
    for post in POSTS:
        for classes in (1, 2, 3):
            attrs = {"coefficients": list(rng.standard_normal(classes * FEATURES)), "intercepts": list(rng.standard_normal(classes)),
                     "classlabels_ints": list(range(5, 5 + max(classes, 2))), "post_transform": post}
            yield M(f"linear_{post}_{classes}", "LinearClassifier", ["x"], ["l", "s"], {"x": rows(nan=False)}, attrs=attrs)
    for targets in (1, 2):
        attrs = {"coefficients": list(rng.standard_normal(targets * FEATURES)), "intercepts": list(rng.standard_normal(targets)), "targets": targets}
        yield M(f"regression_{targets}", "LinearRegressor", ["x"], ["y"], {"x": rows(nan=False)}, attrs=attrs)


def features(M, rng, rows):
    x = rows(nan=False)
    yield M("scaler", "Scaler", ["x"], ["y"], {"x": x}, attrs={"offset": [.1, .2, .3, .4], "scale": [2., 3., 4., 5.]})
    yield M("scaler_one", "Scaler", ["x"], ["y"], {"x": rng.integers(-5, 5, (3, 4))}, attrs={"offset": [.1], "scale": [2.]})
    for norm in ("MAX", "L1", "L2"):
        yield M("normalizer_" + norm, "Normalizer", ["x"], ["y"], {"x": np.concatenate([x, np.zeros((1, 4), np.float32)])}, attrs={"norm": norm})
    yield M("binarizer", "Binarizer", ["x"], ["y"], {"x": x}, attrs={"threshold": .2})
    yield M("imputer_nan", "Imputer", ["x"], ["y"], {"x": rows()}, attrs={"imputed_value_floats": [1., 2., 3., 4.], "replaced_value_float": np.nan})
    yield M("imputer_int", "Imputer", ["x"], ["y"], {"x": rng.integers(0, 3, (4, 3))}, attrs={"imputed_value_int64s": [7], "replaced_value_int64": 1})
    for shape in ((3, 4), (4,), (2, 3, 4)):
        data = {"x": rng.standard_normal(shape).astype(np.float32), "i": np.array([2, 0])}
        yield M(f"extract_{len(shape)}", "ArrayFeatureExtractor", ["x", "i"], ["y"], data)
    data = {"a": x, "b": rng.standard_normal((len(x), 2)).astype(np.float32)}
    yield M("vectorize", "FeatureVectorizer", ["a", "b"], ["y"], data, attrs={"inputdimensions": [4, 2]})
    yield M("onehot", "OneHotEncoder", ["x"], ["y"], {"x": rng.integers(0, 5, (3, 2))}, attrs={"cats_int64s": [0, 2, 3], "zeros": 1})
    words = np.array([["b", "x"], ["a", "c"]], dtype=object)
    yield M("onehot_words", "OneHotEncoder", ["x"], ["y"], {"x": words}, attrs={"cats_strings": ["a", "b", "c"], "zeros": 1})
    numbers = {"x": np.array([[1, 4], [9, 2]])}
    yield M("label_floats", "LabelEncoder", ["x"], ["y"], numbers, attrs={"keys_int64s": [1, 2, 4], "values_floats": [.5, 1.5, 2.5], "default_float": -2.})
    yield M("label_words", "LabelEncoder", ["x"], ["y"], numbers, attrs={"keys_int64s": [1, 2, 4], "values_strings": ["p", "q", "r"]})
    nan = {"x": np.array([1, np.nan, 3], np.float32)}
    yield M("label_nan", "LabelEncoder", ["x"], ["y"], nan, attrs={"keys_floats": [1., np.nan], "values_int64s": [4, 5]}, ml=4)
    yield M("category", "CategoryMapper", ["x"], ["y"], {"x": words}, attrs={"cats_int64s": [4, 5, 6], "cats_strings": ["a", "b", "c"]})


def cases(Case, rng):
    def rows(nan=True):
        x = (rng.integers(-6, 7, (40, FEATURES)) / 4).astype(np.float32)  # often equal to a threshold
        if nan:
            x[rng.random(x.shape) < .1] = np.nan
        return x

    def M(*args, **more):
        return Case(*args, **{"domain": "ai.onnx.ml"} | more)
    yield from shared(M, np.random.default_rng(5))
    yield from ends(M, np.random.default_rng(7))
    yield from forests(M, rng, rows)
    yield from machines(M, rng, rows)
    yield from linear(M, rng, rows)
    yield from features(M, rng, rows)
    for kind, keys in (("int64", "classlabels_int64s = [3, -1, 2]"), ("string", 'classlabels_strings = ["x", "yy", ""]')):
        text = f"g (float[4,3] x) => (seq(map({kind}, float)) y) {{ y = ai.onnx.ml.ZipMap <{keys}> (x) }}"
        yield Case(f"zipmap_{kind}", "", [], [], {"x": rng.standard_normal((4, 3)).astype(np.float32)}, text=text)
    # ONNX Runtime takes maps of floats only from Python
    numpy_type = {"float": np.float32, "int64": np.int64, "string": object}
    for i, (kind, words, x) in enumerate((
            ("string, float", ["x", "", "long name", "y"], {"y": 2.5, "x": -1.0, "other": 7.0}),
            ("string, int64", ["x", "y"], {"y": 2, "x": -1}),
            ("int64, float", [5, -3, 0], {-3: 0.5, 5: 1.5}),
            ("int64, string", [5, -3, 0], {-3: "a", 5: "bcd"}))):
        name, out = kind.split(", ")
        listed = ", ".join(f'"{w}"' if name == "string" else str(w) for w in words)
        text = f"g (map({kind}) x) => ({out}[N,M] y) {{ y = ai.onnx.ml.DictVectorizer <{name}_vocabulary = [{listed}]> (x) }}"
        want = np.array([[x.get(w, "" if out == "string" else 0) for w in words]], numpy_type[out])
        yield Case(f"dict_{i}", "", [], [], {"x": x}, text=text, expect=[want])
    numbers = {4: 1.5, 1: 2.5, 3: -1.0}
    for i, (out, kind, attrs, x, want) in enumerate((
            ("float", "float", 'map_form = "DENSE"', numbers, [2.5, -1, 1.5]),
            ("float", "float", 'map_form = "SPARSE", max_map = 6', numbers, [0, 2.5, 0, -1, 1.5, 0]),
            ("int64", "float", 'cast_to = "TO_INT64"', numbers, [2, -1, 1]),
            ("string", "string", 'cast_to = "TO_STRING"', {4: "four", 1: "", 3: "three"}, ["", "three", "four"]))):
        text = f"g (map(int64, {kind}) x) => ({out}[N,M] y) {{ y = ai.onnx.ml.CastMap <{attrs}> (x) }}"
        yield Case(f"castmap_{i}", "", [], [], {"x": x}, text=text, expect=[np.array([want], numpy_type[out])])

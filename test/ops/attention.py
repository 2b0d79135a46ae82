"""com.microsoft: Attention, MultiHeadAttention, GroupQueryAttention, RotaryEmbedding."""
import numpy as np

B, S, L, H, N = 2, 4, 6, 12, 3  # batch, queries, keys, width, heads


def plain(M, f, rng):
    x, init, heads = {"x": f(B, S, H)}, {"w": f(H, 3 * H), "b": f(3 * H)}, {"num_heads": N}

    def A(name, inputs, more=(), outputs=("y",), **attrs):
        return M("attention_" + name, "Attention", ["x", "w", "b", *inputs], list(outputs), x | dict(more), init, heads | attrs)
    yield A("plain", [])
    yield A("causal", [], unidirectional=1, scale=0.3)
    masks = {"length": np.array([2, 4]), "ends": np.array([4, 3, 1, 0]), "keys": np.array([[1, 1, 0, 0], [1, 1, 1, 1]]),
             "pairs": rng.integers(0, 2, (B, S, S))}
    for name, mask in masks.items():
        yield A("mask_" + name, ["m"], {"m": mask.astype(np.int32)})
    past = {"p": f(2, B, N, 5, H // N)}
    yield A("past", ["", "p"], past, ("y", "q"), unidirectional=1)
    yield A("past_mask", ["m", "p"], past | {"m": rng.integers(0, 2, (B, 9)).astype(np.int32)}, ("y", "q"))
    yield A("bias", ["", "", "a"], {"a": f(1, N, S, S)})
    yield M("attention_sizes", "Attention", ["x", "w", "b"], ["y"], x, {"w": f(H, 30), "b": f(30)}, heads | {"qkv_hidden_sizes": [12, 12, 6]})


def multi(M, f, rng):
    base = {"q": f(B, S, H), "k": f(B, L, H), "v": f(B, L, H)}

    def A(name, inputs, more=(), outputs=("y",), **attrs):
        return M("multi_" + name, "MultiHeadAttention", ["q", "k", "v", *inputs], list(outputs), base | dict(more), attrs={"num_heads": N} | attrs,
                 floats=("qk",))
    yield A("plain", [])
    yield A("bias", ["b"], {"b": f(3 * H)})
    yield A("narrow", ["b"], {"v": f(B, L, 6), "b": f(30)})
    yield A("mask_length", ["", "m"], {"m": np.array([3, 6], np.int32)})
    yield A("mask_keys", ["", "m"], {"m": rng.integers(0, 2, (B, L)).astype(np.int32)})
    yield A("mask_pairs", ["", "m"], {"m": rng.integers(0, 2, (B, S, L)).astype(np.int32)})
    yield A("scores", ["", "", "a"], {"a": f(1, N, S, L)})
    past = {"k": f(B, S, H), "v": f(B, S, H), "pk": f(B, N, 3, 4), "pv": f(B, N, 3, 4)}
    yield A("past", ["", "", "", "pk", "pv"], past, ("y", "ok", "ov"), unidirectional=1)
    yield A("heads", [], {"k": f(B, N, L, 4), "v": f(B, N, L, 4)})
    shown = ("y", "", "", "qk")  # the scores before the softmax
    yield A("qk", [], outputs=shown, scale=0.3)
    yield A("qk_mask", ["b", "m", "a"], {"b": f(3 * H), "m": np.array([3, 6], np.int32), "a": f(1, N, S, L)}, shown)
    yield A("qk_past", ["", "", "", "pk", "pv"], past, ("y", "ok", "ov", "qk"), unidirectional=1)


def rotary(M, f, rng):
    init = {"c": f(20, 4), "s": f(20, 4)}
    for turn in (0, 1):
        places = rng.integers(0, 20, (B, S))
        for name, x, at, attrs in (("packed", f(B, S, 24), places, {}), ("offset", f(B, S, 24), np.array([5]), {}),
                                   ("heads", f(B, N, S, 8), places, {}),
                                   ("part", f(B, S, 36), places, {"num_heads": 3, "rotary_embedding_dim": 8})):
            yield M(f"rotary_{name}_{turn}", "RotaryEmbedding", ["x", "p", "c", "s"], ["y"], {"x": x, "p": at}, init, {"interleaved": turn} | attrs)


def grouped(M, f):
    nq, nk, d = 4, 2, 16
    many = {"q": f(B, S, nq * d), "k": f(B, S, nk * d), "v": f(B, S, nk * d), "l": np.array([S - 1, S - 1], np.int32)}
    one = {"q": f(B, 1, nq * d), "k": f(B, 1, nk * d), "v": f(B, 1, nk * d), "l": np.array([5, 5], np.int32)}
    past = {"pk": f(B, nk, 5, d), "pv": f(B, nk, 5, d)}
    turn = {"c": f(20, d // 2), "s": f(20, d // 2)}
    whole, later = {"t": np.array(S, np.int32)}, {"t": np.array(6, np.int32)}

    def G(name, inputs, data, init, shown=None, **attrs):
        return M("grouped_" + name, "GroupQueryAttention", inputs, ["y", "ok", "ov"], data, init,
                 {"num_heads": nq, "kv_num_heads": nk} | attrs, shown=shown)
    first, next_ = ["q", "k", "v", "", "", "l", "t"], ["q", "k", "v", "pk", "pv", "l", "t"]
    for name, attrs in {"plain": {}, "cap": {"softcap": 1.5}, "window": {"local_window_size": 2}, "smooth": {"smooth_softmax": 1},
                        "scale": {"scale": 0.2}, "both": {"causal": 0}}.items():
        yield G(name, first, many, whole, **attrs)
    yield G("rotary", [*first, "c", "s"], many, whole | turn, do_rotary=1)
    yield G("rotary_turn", [*first, "c", "s"], many, whole | turn, do_rotary=1, rotary_interleaved=1)
    yield G("packed", ["q", "", "", "", "", "l", "t"], {"q": f(B, S, (nq + 2 * nk) * d), "l": many["l"]}, whole)
    yield G("past", [*next_, "c", "s"], one | past, later | turn, do_rotary=1)
    room = {"pk": f(B, nk, 10, d), "pv": f(B, nk, 10, d), "l": np.array([3, 5], np.int32)}
    yield G("buffer", [*next_, "c", "s"], one | room, later | turn, ["y"], do_rotary=1)  # contents after the tokens are undefined
    yield G("sink", [*next_, "", "", "", "", "h"], one | past | {"h": f(nq)}, later)
    yield G("bias", [*next_, "", "", "", "a"], one | past | {"a": f(1, nq, 1, 6)}, later)


def cases(Case, rng):
    def f(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def M(*args, **more):
        return Case(*args, **{"domain": "com.microsoft"} | more)
    yield from plain(M, f, rng)
    yield from multi(M, f, rng)
    yield from rotary(M, f, rng)
    yield from grouped(M, f)

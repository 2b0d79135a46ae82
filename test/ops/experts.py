"""com.microsoft: MoE, with few tokens (chosen experts only) and with many (all experts)."""
import numpy as np
import oracle

E, H, I = 4, 8, 6  # experts, width, inner width


def in_halves(case):
    """The case in f16, judged in f32: ONNX Runtime 1.31 returns zeros for f16."""
    case.data, case.init = ({k: v.astype(np.float16).astype(np.float32) for k, v in d.items()} for d in (case.data, case.init))
    y = oracle.session(case.model().SerializeToString(), optimise=False).run(None, case.data)[0]
    case.data, case.init = ({k: v.astype(np.float16) for k, v in d.items()} for d in (case.data, case.init))
    case.expect, case.rtol, case.atol = [y.astype(np.float16)], 2e-3, 2e-3
    return case


def cases(Case, rng):
    def f(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def M(name, tokens=(5,), rows=I, bias=True, more=(), refuse=None, half=False, logits=None, **attrs):
        count = int(np.prod(tokens))
        data = {"x": f(*tokens, H), "r": f(count, E) if logits is None else logits}
        init = {"w1": f(E, rows, H) * 0.5, "b1": f(E, rows), "w2": f(E, H, I) * 0.5, "b2": f(E, H)}
        inputs = ["x", "r", *init]
        if not bias:
            inputs, init = ["x", "r", "w1", "", "w2"], {k: v for k, v in init.items() if k[0] == "w"}
        init |= dict(more)
        case = Case(name, "MoE", [*inputs, *dict(more)], ["y"], data, init, attrs, "com.microsoft", refuse=refuse, compiled=refuse is None)
        return in_halves(case) if half else case

    for act in ("relu", "gelu", "silu", "identity"):
        yield M("act_" + act, activation_type=act, k=2)
    for tokens in ((1,), (2,), (2, 3)):
        for normal in (0, 1):
            yield M(f"tokens_{len(tokens)}_{tokens[0]}_{normal}", tokens, k=2, normalize_routing_weights=normal)
    yield M("plain", bias=False)
    yield M("plain_one", (1,), bias=False)
    yield M("all", k=4, normalize_routing_weights=1)
    yield M("half", half=True, k=2)
    for tokens in ((1,), (5,)):  # of equal logits the last experts are chosen
        yield M(f"equal_{tokens[0]}", tokens, k=2, logits=np.zeros((tokens[0], E), np.float32))
        pair = {"rows": 2 * I, "activation_type": "swiglu", "swiglu_fusion": 1, "k": 2}
        yield M(f"swiglu_{tokens[0]}", tokens, **pair)
        yield M(f"swiglu_limit_{tokens[0]}", tokens, **pair, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=0.7)
    yield M("refused_k", k=5, refuse="k is 5, expected 1 to 4")
    yield M("refused_fusion", rows=2 * I, activation_type="swiglu", swiglu_fusion=2, refuse="swiglu_fusion is 2, expected 1")
    yield M("refused_mixer", use_sparse_mixer=1, refuse="use_sparse_mixer")
    yield M("refused_fc3", more={"w3": f(E, I, H)}, refuse="fc3 experts")
    yield M("refused_rows", rows=I + 1, refuse="axis 2 of input 4 has extent 6, expected 7")

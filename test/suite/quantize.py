"""`ingot quantize`: models of test/make/mkquantize.py, quantized with examples, in ONNX Runtime and as C.

Results are equal up to one step, and at least as close to the float model as those of ONNX Runtime's quantizer.
Also: accuracy on digits, sizes, refusals.
"""
import json
import math
import os
import random
import re
import shutil

from lib import npy
from lib.core import Fail, Test, must, run, want

ENGINES = {"resnet18": "vm", "mobilenet": "vm", "resnext": "vm", "bert": "c", "digits": "c"}  # vm gives the bits of C without a C compiler


def made(env):
    out = os.path.join(env.build, "quantize")
    env.once("quantize", lambda: env.generated(out, ["make/mkquantize.py", "requirements.txt"], lambda: env.script("mkquantize.py", out)) or True)
    return out


def quantize(env, model, out, *how, rc=0):
    got = run([env.need_ingot(), "quantize", model, "-o", out, "--json", *how], 240)
    if got.rc != rc:
        raise Fail(f"ended with {got.rc}: {got.text()}")
    return json.loads(got.out) if not rc else got.text()


def in_ort(env, job, where):
    job["out"] = os.path.join(where, "ort.npz")
    path = os.path.join(where, "job.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(job, f)
    return json.loads(env.script("quantized.py", path))


def without_label(held, path):
    npy.save_npz(path, {name: a for name, a in npy.load_npz(held).items() if name != "label"})


def against_ort(env, name, method="static"):
    folder, where = made(env), env.scratch("quantize", name + method)
    model, small = os.path.join(folder, name + ".onnx"), os.path.join(where, "small.onnx")
    held = os.path.join(folder, name + "_held.npz")
    told = quantize(env, model, small, "--data", model[:-5] + ".npz", "--holdout", held, "--method", method)
    others = {"ours": small, "theirs": model[:-5] + "_ort.onnx"}
    got = in_ort(env, {"model": model, "others": others, "held": held}, where)
    want(got["ours"]["sqnr"] >= got["theirs"]["sqnr"], f"{got['ours']['sqnr']:.2f} dB, ONNX Runtime's quantizer has {got['theirs']['sqnr']:.2f}")
    want(abs(told["holdout"]["sqnr_db"] - got["ours"]["sqnr"]) < 1, f"told {told['holdout']['sqnr_db']:.2f} dB, {got['ours']['sqnr']:.2f} in ONNX Runtime")
    inputs = os.path.join(where, "in.npz")
    without_label(held, inputs)
    # ONNX Runtime's quantizer quantizes bert between all steps of softmax and normalization; ONNX Runtime with and without optimizations differs as much.
    for whose, path in others.items() if name != "bert" else [("ours", small)]:
        equal_up_to_a_step(env, path, inputs, list(npy.load_npz(os.path.join(where, "ort.npz"))[whose].data), where, ENGINES[name])


def equal_up_to_a_step(env, model, inputs, theirs, where, engine):
    must([env.need_ingot(), "run", model, "--inputs", inputs, "--engine", engine, "-o", os.path.join(where, "c.npz")], "run")
    mine = list(next(iter(npy.load_npz(os.path.join(where, "c.npz")).values())).data)
    values = sorted(set(theirs))
    step = (values[-1] - values[0]) / 255
    if len(values) <= 256:  # outputs are int8 with the scale of a range seen in the calibration data
        step = max(step, min(b - a for a, b in zip(values, values[1:])) * 1.001)
    examples = npy.load_npz(inputs).popitem()[1].shape[0]
    want(len(mine) == len(theirs), f"{len(mine)} results of {len(theirs)}")
    want(not any(a != a for a in mine), "NaN")
    n = len(mine) // examples
    worst = sorted(max(abs(a - b) for a, b in zip(mine[i:i + n], theirs[i:i + n])) / step for i in range(0, len(mine), n))
    # Convolutional networks are integers from end to end, and equal. bert has floats between products: a value halfway between two steps may be rounded to the other
    # if sums have another order, which depends on CPU and runtime: outputs of that example then move by a fraction of a step.
    want(worst[-1] <= 1, f"C and ONNX Runtime differ by {', '.join(f'{w:.2f}' for w in worst)} steps in the examples")


def methods(env, name, least):
    """Every method in ONNX Runtime: the reported error holds there too, up to the int8 activations that it uses (accuracy_level
    4)."""
    folder, where = made(env), env.scratch("quantize", name + "_methods")
    model, held, others, told = os.path.join(folder, name + ".onnx"), os.path.join(folder, name + "_held.npz"), {}, {}
    for method in least:
        others[method] = os.path.join(where, method + ".onnx")
        told[method] = quantize(env, model, others[method], "--data", model[:-5] + ".npz", "--holdout", held, "--method", method)["holdout"]["sqnr_db"]
    got = in_ort(env, {"model": model, "others": others, "held": held}, where)
    for method, db in least.items():
        sqnr = got[method]["sqnr"]
        want(sqnr >= db and abs(sqnr - told[method]) < 2.5, f"{method}: {sqnr:.2f} dB, told {told[method]:.2f}, expected {db}")


def accuracy(env):
    """The digit classifier loses at most half a point of accuracy with 8 bits, and 1.5 with 4-bit weights."""
    folder, where = made(env), env.scratch("quantize", "accuracy")
    model, held = os.path.join(folder, "digits.onnx"), os.path.join(folder, "digits_held.npz")
    for method, points in (("static", 0.5), ("weights4", 1.5), ("weights8", 0.5), ("dynamic", 0.5)):
        small = os.path.join(where, method + ".onnx")
        told = quantize(env, model, small, "--data", model[:-5] + ".npz", "--holdout", held, "--label", "label", "--method", method)["holdout"]
        lost = in_ort(env, {"model": model, "others": {"x": small}, "held": held}, where)["x"]["lost"]
        want(lost <= points and abs(told["float_accuracy"] - told["accuracy"] - lost) < 0.4, f"{method}: {lost:.2f} points lost, told {told}")


def small(env):
    """4-bit weights: the file, and the weights in the C, take at most 0.16 of the float ones."""
    folder, where = made(env), env.scratch("quantize", "small")
    model, four = os.path.join(folder, "dense.onnx"), os.path.join(where, "four.onnx")
    quantize(env, model, four, "--method", "weights4")
    ratio = os.path.getsize(four) / os.path.getsize(model)
    weights = [json.loads(run([env.need_ingot(), "inspect", m, "-d", "batch=1", "--json"], 60).out)["memory"]["weights"] for m in (model, four)]
    want(ratio <= 0.16 and weights[1] <= 0.16 * weights[0], f"{ratio:.4f} of the file, {weights[1] / weights[0]:.4f} of the weights")
    for march in ("sse2", "avx2", "avx512"):
        told = json.loads(run([env.ingot, "inspect", four, "-d", "batch=1", "--march", march, "--json"], 60).out)["memory"]["weights"]
        want(told <= 0.16 * weights[0], f"{march}: {told / weights[0]:.4f} of the weights")
    # int8 weights are int8 in the C too, for one row and for several, if the zero point is computed.
    eight = os.path.join(where, "eight.onnx")
    quantize(env, model, eight, "--method", "dynamic")
    for march, most in (("sse2", 0.27), ("avx2", 0.27), ("avx512", 0.27)):
        told = json.loads(run([env.ingot, "inspect", eight, "-d", "batch=1", "--march", march, "--json"], 60).out)["memory"]["weights"]
        want(told <= most * weights[0], f"dynamic, {march}: {told / weights[0]:.4f} of the weights")
    must([env.ingot, "verify", eight, "-d", "batch=1"], "verify")


def lines_of_halves(env, folder, where, method):
    """On an image of two short lines the second line reuses panels that the first widened; threads, which may compute the second
    alone, widen for themselves, with the same bits."""
    net, half, made_c, got = os.path.join(folder, "mobilenet"), os.path.join(where, method + "_lines.onnx"), os.path.join(where, "m.c"), []
    quantize(env, net + ".onnx", half, "--method", method)
    must([env.ingot, "compile", half, "-d", "batch=1", "--march", "avx512", "--quiet", "-o", made_c], "compile")
    with open(made_c, encoding="utf-8") as f:
        want(re.search(r"w: b?f16\[1,30,5,1,1,16,16\].*\n \* s: f32\[\d,5,1,1,16,16\] wide", f.read()), f"{method}: a layer of 2x2 makes floats of its weights for each line")
    name, all_of = npy.load_npz(net + ".npz").popitem()
    npy.save_npz(os.path.join(where, "image.npz"), {name: npy.Array("f32", (1, *all_of.shape[1:]), all_of.data[:math.prod(all_of.shape[1:])])})
    for more in (("--engine", "vm"), ("--threads", "3", "--threads-grain", "1")):
        out = os.path.join(where, "image_out.npz")
        must([env.ingot, "run", half, "-d", "batch=1", "--inputs", os.path.join(where, "image.npz"), "--march", "avx512", *more, "-o", out], "run")
        got.append(list(next(iter(npy.load_npz(out).values())).data))
    want(got[0] == got[1], f"{method}: lines change bits")


def halves(env):
    """16-bit weights stay 16-bit in memory; where several tiles of rows read them, the first one stores the f32 values, which
    changes no bit. --optimize-for size does not spend this memory."""
    folder, where = made(env), env.scratch("quantize", "halves")
    ids = npy.load_npz(os.path.join(folder, "bert.npz"))
    npy.save_npz(os.path.join(where, "in.npz"), {k: npy.Array(a.kind, (1, *a.shape[1:]), a.data[:len(a.data) // a.shape[0]]) for k, a in ids.items()})
    for method in ("f16", "bf16"):
        half, got = os.path.join(where, method + ".onnx"), {}
        quantize(env, os.path.join(folder, "bert.onnx"), half, "--method", method)
        # with 16 registers no tile stores them: the bits equal those of tiles that each widen
        for march, more, kept in (("avx512", (), True), ("avx512", ("--optimize-for", "size"), False), ("avx2", (), False)):
            made_c = os.path.join(where, "m.c")
            must([env.ingot, "compile", half, "-d", "batch=1", "--march", march, "--quiet", *more, "-o", made_c], "compile")
            with open(made_c, encoding="utf-8") as f:
                text = f.read()
            want(("] wide" in text) == kept and "uint16_t at[" in text, f"{method} {march} {more}: floats are {'not ' if kept else ''}kept, or weights are none of 16 bits")
        for name, more in (("vm", ("--engine", "vm")), ("threads", ("--threads", "3", "--threads-grain", "1"))):
            out = os.path.join(where, name + ".npz")
            must([env.ingot, "run", half, "-d", "batch=1", "--inputs", os.path.join(where, "in.npz"), "--march", "avx512", *more, "-o", out], name)
            got[name] = list(next(iter(npy.load_npz(out).values())).data)
        want(got["vm"] == got["threads"], f"{method}: threads change bits")
        lines_of_halves(env, folder, where, method)
        must([env.ingot, "verify", half, "-d", "batch=1", "--engine", "vm", "--march", "avx512"], "verify")


def words(env):
    """Scalar loops sum int8 products in a form that compilers vectorize (lower_i16.c), with the bits of vectors."""
    folder, where = made(env), env.scratch("quantize", "words")
    model, got = os.path.join(folder, "dense.onnx"), []
    first = npy.load_npz(model[:-5] + ".npz").popitem()
    npy.save_npz(os.path.join(where, "in.npz"), {first[0]: npy.Array("f32", (1, *first[1].shape[1:]), first[1].data[:math.prod(first[1].shape[1:])])})
    for method in ("static", "dynamic"):
        small, text = os.path.join(where, method + ".onnx"), os.path.join(where, "m.c")
        quantize(env, model, small, "--data", model[:-5] + ".npz", "--method", method)
        for how, kept in ((("--march", "scalar"), True), (("--march", "sse2"), False)):
            must([env.ingot, "compile", small, "-d", "batch=1", *how, "--quiet", "-o", text], "compile")
            with open(text, encoding="utf-8") as f:
                want(("i16[1,512] i16" in f.read()) == kept, f"{method} {how}: {'no ' if kept else ''}int16 sums")
            code = must([env.ingot, "opt", small, "-d", "batch=1", *how, "--dump=bytecode"], "opt")
            want("[1,512] i16" not in code, f"{method} {how}: the bytecode adds int16 products one by one")
            for engine in ("vm", "c"):
                out = os.path.join(where, "out.npz")
                must([env.ingot, "run", small, "-d", "batch=1", *how, "--engine", engine, "--inputs", os.path.join(where, "in.npz"), "-o", out], "run")
                got.append(list(next(iter(npy.load_npz(out).values())).data))
                want(got[-1] == got[0], f"{method} {how} {engine}: other bits")
        got.clear()


def word_columns(env):
    """The same with remainder columns, and for engine c."""
    rng, where = random.Random(5), env.scratch("quantize", "word_columns")
    keeps = os.path.join(where, "cc")
    with open(keeps, "w") as f:
        f.write(f'#!/bin/sh\nfor a in "$@"; do case $a in *.c) cp "$a" "{where}/kept.c";; esac; done\nexec cc "$@"\n')
    os.chmod(keeps, 0o755)
    for rows, cols in ((1, 130), (3, 136), (5, 45), (4, 31)):
        model, got = os.path.join(where, f"{cols}.ing"), []
        with open(model, "w", encoding="utf-8") as f:
            f.write(f"""graph (%x: u8[{rows},256]) {{
  %w: i32[256,{cols}] = const {{{", ".join(str(rng.randint(-128, 127)) for _ in range(256 * cols))}}}
  %1: i32[{rows},256] = cast(%x) {{to = i32}}
  %y: i32[{rows},{cols}] = contract(%1, %w) {{spec = "tk,kn->tn"}}
  return %y
}}
""")
        for engine in ("ref", "vm", "c"):
            out = os.path.join(where, engine + ".npz")
            must([env.ingot, "run", model, "--march", "scalar", "--engine", engine, "--seed", "3", "--quiet", "-o", out], "run", env={"CC": keeps})
            got.append(list(next(iter(npy.load_npz(out).values())).data))
        want(got[0] == got[1] == got[2], f"{rows}x{cols}: other bits")
        with open(os.path.join(where, "kept.c"), encoding="utf-8") as f:
            want("] i16" in f.read(), f"{rows}x{cols}: engine c has no int16 sums")


def word_graph(rng, batch, cin, cout, group, side, window, stride, pad, zero):
    """An int8 convolution with zero point and bias, as text; sizes with remainders."""
    n = cout * cin // group * window * window
    weights = ", ".join(str(rng.randint(-127, 127)) for _ in range(n))
    out = [(s + 2 * pad - window) // stride + 1 for s in side]
    x, y = f"[{batch},{cin},{side[0]},{side[1]}]", f"[{batch},{cout},{out[0]},{out[1]}]"
    return f"""graph (%x: u8{x}) {{
  %w: i32[{cout},{cin // group},{window},{window}] = const {{{weights}}}
  %b: i32[{cout},1,1] = const {{{", ".join(str(i * 37 - 100) for i in range(cout))}}}
  %z: i32[] = const {{{zero}}}
  %i: i32{x} = cast(%x) {{to=i32}}
  %d: i32{x} = sub(%i, %z)
  %c: i32{y} = conv(%d, %w) {{group={group}, stride=[{stride},{stride}], dilation=[1,1], pad_lo=[{pad},{pad}], pad_hi=[{pad},{pad}]}}
  %a: i32{y} = add(%c, %b)
  return %a
}}
"""


def word_convolutions(env):
    """The same for convolutions: padding, strides, groups, remainder rows and sums."""
    where, rng = env.scratch("quantize", "word_convolutions"), random.Random(5)
    cases = [(2, 3, 16, 1, (13, 11), 3, 2, 1, 121), (1, 20, 24, 1, (5, 7), 1, 1, 0, 0), (1, 12, 32, 2, (9, 6), 3, 1, 1, 3), (1, 80, 13, 1, (1, 17), 1, 1, 0, 255),
             (1, 600, 9, 1, (3, 3), 3, 1, 1, 128), (3, 128, 64, 1, (1, 1), 1, 1, 0, 9), (1, 48, 64, 4, (15, 15), 1, 2, 0, 50)]
    for case in cases:
        model, got = os.path.join(where, "m.ing"), []
        with open(model, "w", encoding="utf-8") as f:
            f.write(word_graph(rng, *case))
        shape = (case[0], case[1], *case[4])
        npy.save_npz(os.path.join(where, "in.npz"), {"0": npy.Array("u8", shape, [rng.randrange(256) for _ in range(math.prod(shape))])})
        want("int16 sums" in must([env.need_ingot(), "opt", model, "--march", "scalar", "--explain"], "opt"), f"{case}: no int16 sums")
        scalar = ("--engine", "c", "--march", "scalar")
        for how, cc in ((("--engine", "ref"), "cc"), (scalar, "cc"), ((*scalar, "--threads", "3", "--threads-grain", "1"), "cc"), (scalar, "clang")):
            out = os.path.join(where, "out.npz")
            if not shutil.which(cc):
                continue
            must([env.ingot, "run", model, *how, "--inputs", os.path.join(where, "in.npz"), "-o", out], "run", env={"CC": cc})
            got.append(list(next(iter(npy.load_npz(out).values())).data))
            want(got[-1] == got[0], f"{case} {how}: other numbers")


def judged(env):
    """Products with block-quantized weights round their activations: `verify` rounds the reference in the same way for every
    target, so that only the rounding of sums remains."""
    folder, where = made(env), env.scratch("quantize", "judged")
    ways = ((), ("--optimize-for", "ram"), ("--march", "multi"), ("--precise",))
    for name, method, how in (("dense", "weights4", ways), ("bert", "weights8", ((), ("--per-node",)))):
        packed = os.path.join(where, name + method + ".onnx")
        quantize(env, os.path.join(folder, name + ".onnx"), packed, "--method", method)
        for more in how:
            told = json.loads(must([env.ingot, "verify", packed, "-d", "batch=1", "--engine", "vm", "--json", *more], "verify"))
            rows = [row["output"] for row in told.get("rows") or told["values"] if row["output"]]
            worst = max(row["max_abs"] for row in rows)
            want(worst < 1e-4, f"{name} {method} {more}: off by {worst}")
        must([env.ingot, "verify", packed, "-d", "batch=1", "--python", env.need_python()], "verify with ONNX Runtime, which rounds the operands of products")
    got = must([env.ingot, "verify", packed, "-d", "batch=1", "--engine", "vm", "--bisect"], "verify", cwd=where)
    want("agrees with ref on every value" in got, got)


def constants(env):
    """Weights in Constant nodes are replaced too; weights shared by layers are stored once, unless a layer is equalized with its
    neighbors."""
    folder, where = made(env), env.scratch("quantize", "constants")
    model, out = os.path.join(folder, "shared.onnx"), os.path.join(where, "x.onnx")
    for method, once, apart in (("static", 0.5, 0.9), ("weights8", 0.45, 0.8), ("f16", 0.6, 1.3)):
        for most, more in ((once, ()), (apart, ("--equalize",))):
            quantize(env, model, out, "--data", model[:-5] + ".npz", "--method", method, *more)
            got = in_ort(env, {"model": model, "others": {"x": out}, "held": model[:-5] + "_held.npz"}, where)["x"]["sqnr"]
            ratio = os.path.getsize(out) / os.path.getsize(model)
            want(got > 25 and ratio < most, f"{method} {more}: {got:.1f} dB, {ratio:.3f} of the file")


def layers(env):
    """Layers excluded by name and by budget, and the other messages."""
    folder, where = made(env), env.scratch("quantize", "layers")
    model, out = os.path.join(folder, "mobilenet.onnx"), os.path.join(where, "x.onnx")
    data = ("--data", model[:-5] + ".npz", "--calibrate", "minmax")
    kept = quantize(env, model, out, *data, "--exclude", "/Conv_2*")["layers"]
    for layer in kept:
        want(layer["kept"] == layer["name"].startswith("/Conv_2") and (layer["bytes"] == layer["bytes_before"]) == layer["kept"], str(layer))
    plain, bert = quantize(env, model, out, *data), os.path.join(folder, "bert.onnx")
    biased = [quantize(env, bert, out, "--data", bert[:-5] + ".npz", "--calibrate", "mse", *how)["holdout"]["sqnr_db"] for how in ((), ("--bias-correction",))]
    want(biased[1] > biased[0], f"bias correction does not help: {biased} dB")
    alike = quantize(env, model, out, *data, "--granularity", "tensor"), quantize(env, model, out, *data, "--granularity", "tensor", "--equalize")
    want(alike[1]["holdout"]["sqnr_db"] > alike[0]["holdout"]["sqnr_db"], "equalization does not help where a layer has one scale")
    budget = plain["data"]["sqnr_db"] + 2
    held = quantize(env, model, out, *data, "--budget", str(budget))
    stay, every = (sum(layer["bytes_before"] for layer in held["layers"] if layer["kept"] or all_of_them) for all_of_them in (False, True))
    want(held["data"]["sqnr_db"] >= budget and 0 < stay < every / 4, f"{stay} of {every} bytes stay for {budget:.1f} dB, {held['data']['sqnr_db']:.1f}")
    said = run([env.need_ingot(), "quantize", model, "-o", out, *data, "--budget", "200"], 120).text()
    want("no layer can be quantized" in said, said)


def ranges(env):
    """All calibration methods; by default the best on the examples; signed and symmetric int8; a folder of examples of several
    lengths."""
    folder, where = made(env), env.scratch("quantize", "ranges")
    model, out = os.path.join(folder, "digits.onnx"), os.path.join(where, "x.onnx")
    data = ("--data", model[:-5] + ".npz", "--label", "label")
    got = {how: quantize(env, model, out, *data, "--calibrate", how)["data"]["sqnr_db"] for how in ("minmax", "average", "percentile", "entropy", "mse")}
    best = quantize(env, model, out, *data)
    want(min(got.values()) > 40 and got[best["calibrate"]] == best["data"]["sqnr_db"] >= max(got["minmax"], got["mse"], got["percentile"]) - 0.5, f"{got}, taken {best['calibrate']}")
    for how in (("--activations", "s8"), ("--symmetric",), ("--activations", "s8", "--symmetric")):
        want(quantize(env, model, out, *data, *how)["data"]["sqnr_db"] > 40, str(how))
    some = os.path.join(where, "folder")
    os.makedirs(some, exist_ok=True)
    images = npy.load_npz(model[:-5] + ".npz")["image"]
    for i, n in enumerate((1, 3, 2, 3)):
        npy.save_npz(os.path.join(some, f"{i}.npz"), {"image": npy.Array("f32", (n, 1, 8, 8), images.data[64 * i:64 * (i + n)])})
    got = quantize(env, model, out, "--data", some)
    want(got["data"]["examples"] == 3 and got["holdout"]["examples"] == 1 and got["holdout"]["sqnr_db"] > 40, str(got["holdout"]))


def refused(env):
    folder, where = made(env), env.scratch("quantize", "refused")
    model, out = os.path.join(folder, "digits.onnx"), os.path.join(where, "none.onnx")
    good = npy.load_npz(model[:-5] + ".npz")["image"]
    arrays = {"nan": {"image": npy.Array("f32", good.shape, [float("nan"), *good.data[1:]])}, "flat": {"image": npy.Array("f32", (60, 64), good.data)},
              "wide": {"image": npy.Array("f32", (60, 1, 4, 16), good.data)}, "double": {"image": npy.Array("f64", good.shape, good.data)}, "named": {"images": good}}
    for name, a in arrays.items():
        npy.save_npz(os.path.join(where, name + ".npz"), a)
    data = ("--data", model[:-5] + ".npz")
    cases = [((), 2, "expected --data"), ((*data, "--exclude", "conv9"), 2, "did you mean 'conv1'?"), ((*data, "--method", "int8"), 2, "expected one of static"),
             ((*data, "--budget", "much"), 2, "expected a number"), ((*data, "--label", "class"), 4, "expected an array 'class'"), ((*data, "--block", "48", "--method", "weights4"), 2, "power of 2"),
             (("--data", os.path.join(where, "nan.npz")), 4, "array 'image', f32[60,1,8,8], holds NaN at [0,0,0,0]"), (("--data", os.path.join(where, "flat.npz")), 4, "as many dimensions, or one more"),
             (("--data", os.path.join(where, "wide.npz")), 4, "dimension 2 is 4, expected 8"), (("--data", os.path.join(where, "double.npz")), 4, 'astype("float32")'),
             (("--data", os.path.join(where, "named.npz")), 4, "no array for input 'image'; found images; did you mean 'images'?"), (("--data", where + "/nothing.npz"), 5, "No such file")]
    for how, rc, text in cases:
        said = quantize(env, model, out, *how, rc=rc)
        want(text in said and not os.path.exists(out), f"{how}: {said}")
    want("read" in quantize(env, model, model, "--method", "f16", rc=2), "its own model is replaced")


def odd(env):
    """Models and examples with numbers or shapes that cannot be quantized are refused or reported; see test/make/mkquantodd.py."""
    folder, where = os.path.join(env.build, "quantodd"), env.scratch("quantize", "odd")
    env.generated(folder, ["make/mkquantodd.py", "requirements.txt"], lambda: env.script("mkquantodd.py", folder))
    at, out, weights = (lambda name: os.path.join(folder, name)), os.path.join(where, "x.onnx"), ("--method", "weights8")
    data, none = ("--data", at("x.npz")), os.path.join(where, "none.onnx")
    cases = [("short_bias", (*weights, "--equalize"), 4, "the bias has 1 elements, expected 64, one for each channel"), ("short_bias_norm", weights, 4, "the bias has 1 elements"),
             ("no_channels", weights, 3, "nothing to quantize"), ("no_channels", ("--method", "f16"), 3, "no constant of f32 with"), ("unsorted", weights, 4, "not sorted"),
             ("infinite", weights, 4, "tensor 'w' of layer 'mm' holds an infinity at [3,3]"), ("nan", data, 4, "holds NaN at [3,3]"),
             ("far_inputs", data, 4, "layer 'mm2' reads 'h', which is infinite or NaN"),
             ("plain", ("--data", at("label_far.npz"), "--label", "t"), 4, "example 0 has label 64: expected 0 to 63"),
             ("plain", ("--data", at("label_many.npz"), "--label", "t"), 4, "example 0 has 2 labels, its output is f32[1,64]")]
    for name, how, rc, text in cases:
        said = quantize(env, at(name + ".onnx"), none, *how, rc=rc)
        want(text in said and not os.path.exists(none), f"{name} {how}: {said}")
    said = quantize(env, at("plain.onnx"), os.path.join(where, "x.gguf"), *weights, rc=2)
    want("is not written as '.gguf'" in said, said)
    page = os.path.join(where, "page.html")  # symbolic sizes that are not given change neither weights nor the page; given ones are used
    for how, size in (((), ",64]"), (("-d", "length=5"), "f32[1,5,64]")):
        kept = quantize(env, at("open.onnx"), out, *weights, "--html", page, *how)["layers"][0]
        with open(page, encoding="utf-8") as f:
            text = f.read()
        want(not kept["kept"] and size in text, f"{kept}, {size} in the page")
        os.remove(page)
    kept = quantize(env, at("big.onnx"), out, "--method", "f16")["layers"][0]
    want(kept["kept"] and kept["sqnr_db"] is None and kept["bytes"] == kept["bytes_before"], str(kept))
    for name, examples in (("logs", "x.npz"), ("silent", "silent.npz")):
        said = run([env.need_ingot(), "quantize", at(name + ".onnx"), "-o", out, "--data", at(examples)], 60).out.decode()
        want("examples, SQNR -inf dB" in said, f"{name}: {said}")
    corrected = [quantize(env, at("two_axes.onnx"), out, "--data", at("two_axes.npz"), *how)["layers"][1]["sqnr_db"] for how in ((), ("--bias-correction",))]
    want(corrected[1] > corrected[0] + 6, f"two readers with channels along other axes: {corrected}")
    for budget, broken in (("36", False), ("39", True)):
        said = run([env.need_ingot(), "quantize", at("plain.onnx"), "-o", out, "--data", at("uneven.npz"), "--budget", budget], 60).text()
        want((f"the budget of {budget} dB does not hold on the 96 examples of the calibration data" in said) == broken, said)


def told(env):
    """Each of several outputs has a line, integers are compared too. A warning names a model that is already quantized, or is
    measured on its calibration data; no message advises quantizing it again."""
    folder, where = os.path.join(env.build, "quantodd"), env.scratch("quantize", "told")
    env.generated(folder, ["make/mkquantodd.py", "requirements.txt"], lambda: env.script("mkquantodd.py", folder))
    at, out, twice = (lambda name: os.path.join(folder, name)), os.path.join(where, "out.onnx"), os.path.join(where, "twice.onnx")
    got = quantize(env, at("several.onnx"), out, "--data", at("x.npz"), "--symmetric", "--granularity", "tensor")["data"]
    y, z, best, fine = got["outputs"]
    want([o["name"] for o in got["outputs"]] == ["y", "z", "best", "fine"] and y["sqnr_db"] > got["sqnr_db"] > z["sqnr_db"] > 20 and best["sqnr_db"] is None, str(got))
    want(best["elements"] == got["examples"] == 16 and y["elements"] == 0 and best["changed"] < 8 and fine["elements"] == 1024 and fine["changed"] > 900, str(got))
    said = run([env.need_ingot(), "quantize", at("several.onnx"), "-o", out, "--data", at("one.npz")], 60).out.decode()
    want(re.search(r"\n  y: SQNR [0-9.]+ dB.*\n  z: SQNR [0-9.]+ dB.*\n  best: [01] of 1 elements changed\n  fine: [0-9]+ of 64 elements changed", said), said)
    want("held-out data: none (only one example)" in said, said)
    got = quantize(env, at("words.onnx"), out, "--data", at("x.npz"))["data"]
    want(got["outputs"][1]["elements"] == 16 and got["outputs"][1]["changed"] < 4, f"strings that are the same count as changed: {got}")
    got = quantize(env, at("words.onnx"), twice, "--data", at("x.npz"), "--method", "weights4")["data"]
    want(0 < got["outputs"][1]["changed"] < 16, f"strings that changed are not counted: {got}")
    os.remove(twice)
    said = run([env.ingot, "quantize", at("words.onnx"), "-o", out, "--data", at("x.npz")], 60).out
    want(not {7, 27} & set(said) and rb"  word\x1b[31m: " in said and rb"  bell\x07: SQNR " in said, f"names of outputs reach the terminal as they are: {said}")
    quantize(env, at("several.onnx"), out, "--data", at("x.npz"))
    none = os.path.join(where, "none.onnx")
    said = quantize(env, out, none, "--data", at("x.npz"), rc=3)
    want("it is already quantized, by nodes such as" in said and not os.path.exists(none), said)
    part, weights = os.path.join(where, "part.onnx"), ("--method", "weights8")
    quantize(env, at("far_inputs.onnx"), part, "--method", "dynamic", "--exclude", "mm2")
    said = run([env.ingot, "quantize", part, "-o", twice, *weights], 60).text()
    want("is already quantized, by" in said and "errors add up" in said and os.path.exists(twice), said)
    said = run([env.ingot, "quantize", at("begun.onnx"), "-o", twice, *weights], 60).text()
    want("is already quantized, by 1 node such as DynamicQuantizeMatMul" in said, said)
    whole = os.path.join(where, "whole.onnx")
    quantize(env, at("far_inputs.onnx"), whole, "--method", "dynamic")
    for name, advised in ((at("far_inputs.onnx"), True), (whole, False)):
        said = run([env.ingot, "compile", name, "--ram", "600", "-o", os.path.join(where, "m.c")], 60).text()
        want("--ram" in said and ("quantization to int8" in said) == advised, f"{name}: {said}")


def many_labels(env):
    """A folder with batches of several sizes: every row has its label."""
    folder, where = made(env), env.scratch("quantize", "many_labels")
    model, some = os.path.join(folder, "digits.onnx"), os.path.join(where, "folder")
    os.makedirs(some, exist_ok=True)
    all_of = npy.load_npz(model[:-5] + ".npz")
    images, labels = all_of["image"], list(all_of["label"].data)
    for i, (first, n) in enumerate(((0, 1), (1, 3), (4, 4), (8, 2))):
        truth = labels[first:first + n]
        if i == 1:
            truth[2] = (truth[2] + 1) % 10  # a wrong label after the first of its file
        npy.save_npz(os.path.join(some, f"{i}.npz"), {"image": npy.Array("f32", (n, 1, 8, 8), images.data[64 * first:64 * (first + n)]), "label": npy.Array("i64", (n,), truth)})
    got = quantize(env, model, os.path.join(where, "x.onnx"), "--data", some, "--label", "label")["data"]
    want(got["float_accuracy"] == 87.5, str(got))


def tests(env):
    bert = {"dynamic": 30, "weights8": 35, "weights4": 15, "f16": 60, "bf16": 45}
    return [*(Test(f"quantize/{name}", lambda n=name: against_ort(env, n), cost=5) for name in ENGINES),
            Test("quantize/methods/bert", lambda: methods(env, "bert", bert), cost=2),
            Test("quantize/methods/resnet18", lambda: methods(env, "resnet18", {"dynamic": 30, "weights4": 10}), cost=3),
            Test("quantize/methods/old", lambda: methods(env, "old", {"static": 35, "dynamic": 35, "weights8": 35, "weights4": 15, "f16": 60}), cost=1),
            Test("quantize/accuracy", lambda: accuracy(env), cost=2), Test("quantize/small", lambda: small(env), cost=1), Test("quantize/halves", lambda: halves(env), cost=8), Test("quantize/told", lambda: told(env), cost=3), Test("quantize/words", lambda: words(env), cost=6), Test("quantize/word_convolutions", lambda: word_convolutions(env), cost=12), Test("quantize/word_columns", lambda: word_columns(env), cost=4), Test("quantize/judged", lambda: judged(env), cost=4),
            Test("quantize/constants", lambda: constants(env), cost=3), Test("quantize/layers", lambda: layers(env), cost=4), Test("quantize/ranges", lambda: ranges(env), cost=1), Test("quantize/refused", lambda: refused(env), cost=1),
            Test("quantize/odd", lambda: odd(env), cost=1), Test("quantize/many_labels", lambda: many_labels(env), cost=1)]

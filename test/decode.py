"""Runs language models through libingot.so, in one process, with numpy: prints a JSON object.

usage: decode.py LIBRARY chunks DIR ENGINE MARCH    logits of every model of DIR in runs of 1, 7, 64 and all tokens: those that differ from
                                                    runs of 1
       decode.py LIBRARY slots DIR ENGINE MARCH     several sequences in one run: rows that differ from those of each sequence alone
       decode.py LIBRARY real MODEL                 SmolLM2-135M: best logits, prompts that are continued otherwise than
                                                    PROMPTS says, what it thinks of TEXT
"""
import ctypes
import json
import sys
from pathlib import Path

import numpy as np


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_uint32), ("dim", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64)]


class Language(ctypes.Structure):
    _fields_ = [("context", ctypes.c_uint64), ("chunk", ctypes.c_uint64), ("every", ctypes.c_int), ("cache", ctypes.c_char_p),
                ("slots", ctypes.c_uint32), ("activations", ctypes.c_char_p)]


class Session:
    def __init__(self, library, path, engine, march=None, precise=False, **language):
        self.lib, self.engine = ctypes.CDLL(library), engine.encode()
        self.lib.ingot_new.restype = ctypes.c_void_p
        self.lib.ingot_output.restype = Tensor
        self.lib.ingot_message.restype = ctypes.c_char_p
        self.m = ctypes.c_void_p(self.lib.ingot_new(None))
        self.call("ingot_open", str(path).encode())
        self.call("ingot_set_language", ctypes.byref(Language(**language)))
        if march:
            self.call("ingot_set_target", march.encode())
        if precise:
            self.call("ingot_set_precise")

    def call(self, name, *args):
        if getattr(self.lib, name)(self.m, *args):
            n = self.lib.ingot_message_count(self.m)
            raise SystemExit("; ".join(self.lib.ingot_message(self.m, i, None).decode() for i in range(n)))

    def put(self, name, values):
        x = np.array(values, np.int32)
        self.call("ingot_input", ctypes.byref(Tensor(name.encode(), b"i32", 1, (ctypes.c_int64 * 1)(len(x)), x.ctypes.data, x.nbytes)))

    def run(self, ids, rows=None):
        """Logits [tokens or 1, vocabulary]. With rows: ids is a list of lists, one per sequence."""
        for i, x in enumerate(ids if rows else []):
            self.put(f"ids.{i}", x)
        self.put(*(("rows", rows) if rows else ("ids", ids)))
        self.call("ingot_run", self.engine, ctypes.c_uint64(0))
        y = self.lib.ingot_output(self.m, 0)
        return np.ctypeslib.as_array(ctypes.cast(y.data, ctypes.POINTER(ctypes.c_float)), (y.dim[0], y.dim[1])).copy()

    def feed(self, ids, chunk):
        self.call("ingot_reset")
        return np.concatenate([self.run(ids[i:i + chunk]) for i in range(0, len(ids), chunk)])

    def close(self):
        self.lib.ingot_free(self.m)


def chunks(library, folder, engine, march):
    wrong, models = [], sorted(Path(folder).glob("*.gguf"))
    for path, cache in [(p, None) for p in models] + [(Path(folder) / f"{name}.gguf", b"int8") for name in ("qwen3", "gemma2")]:
        s = Session(library, path, engine, march, chunk=90, every=1, cache=cache, context=96)
        ids = np.random.default_rng(7).integers(0, 47, 90)
        one = s.feed(ids, 1)
        for chunk in (7, 64, 90):
            rows = (s.feed(ids, chunk) != one).any(1)
            if rows.any():
                wrong.append(f"{path.stem}: runs of {chunk} give other bits from token {rows.argmax()} on")
        s.close()
    for name in ("gemma2", "gemma3", "mistral"):  # short runs: layers with a window keep less than the context
        path, ids = Path(folder) / f"{name}.gguf", np.random.default_rng(7).integers(0, 47, 90)
        whole, some = (Session(library, path, engine, march, chunk=n, every=1) for n in (90, 7))
        if any((some.feed(ids, n) != whole.feed(ids, 90)).any() for n in (7, 1)):
            wrong.append(f"{name}: a window that wraps around gives other bits")
        whole.close()
        some.close()
    return {"models": len(models), "wrong": wrong}


def slots(library, folder, engine, march):
    """Three sequences take turns of 0 to 12 tokens in one run; every row has the bits of a run of one sequence alone. One goes back."""
    wrong, models = [], sorted(Path(folder).glob("*.gguf"))
    for path in models:
        g = np.random.default_rng(5)
        ids = [g.integers(0, 47, 40) for _ in range(3)]
        alone = Session(library, path, engine, march, chunk=12, every=1, context=96)
        want = [alone.feed(x, 12) for x in ids]
        alone.close()
        s, at = Session(library, path, engine, march, chunk=12, slots=3, context=96), [0, 0, 0]
        for step in range(30):
            n = [min(int(g.choice([0, 1, 1, 5, 12])), 40 - k) for k in at]
            if step == 9 and at[1]:
                at[1] = 0
                s.call("ingot_rewind", 1, ctypes.c_uint64(0))
                n[1] = 3
            ends = [(i, sum(n[:i + 1]) - 1) for i in (2, 0, 1) if n[i]]
            if not ends:
                continue
            y = s.run([ids[i][at[i]:at[i] + n[i]] for i in range(3)], [row for _, row in ends])
            at = [k + m for k, m in zip(at, n)]
            bad = [i for k, (i, _) in enumerate(ends) if (y[k] != want[i][at[i] - 1]).any()]
            if bad:
                wrong.append(f"{path.stem}: step {step}, runs of {n}: sequences {bad} have other bits")
                break
        s.close()
    return {"models": len(models), "wrong": wrong}


# ---- the real model ----

TEXT = ("The harbour lay quiet in the early light. Two boats had come in during the night, and their crews were still asleep below deck. "
        "On the quay an old man mended a net with slow, careful hands, and a dog watched him from the shade of a barrel. Somewhere up the "
        "hill a bell rang six times. By noon the square would be full of people selling fish, bread and oranges, but for now there was "
        "only the sound of water against the stones.")
SYSTEM = "system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
START, END, NEWLINE = 1, 2, 198
# prompt; plain text, or in the chat template; greedy tokens; smallest lead of the best token over the second, in f32
PROMPTS = [
    ("1, 2, 3, 4, 5, 6, 7,", False, [216, 40, 28, 216, 41, 28, 216, 33, 32, 28, 216, 33, 33, 28, 216, 33], 1.90),
    ("Once upon a time", False, [28, 260, 2240, 282, 23324, 27108, 436, 253, 15114, 39228, 28, 351, 25854, 41658, 284, 14055], 0.16),
    ("Name the days of the week.", True, [504, 2009, 282, 260, 2605, 359, 42, 12397, 28, 14801, 28, 15083, 28, 14963, 28, 11655], 0.64),
    ("What is 1+1?", True, [33, 1232, 216, 33, 446, 216, 34, 281, 6530, 30, END], 0.30),
    ("hi", True, [19556, 665, 17, 1073, 416, 339, 4237, 346, 1834, 47, END], 0.06),
    ("What is the capital of France?", True, [504, 3575, 282, 4649, 314, 7042, 30, END], 0.08),
]


def tokenizer(path):
    import gguf
    from tokenizers import Tokenizer, models, pre_tokenizers
    fields = gguf.GGUFReader(path).fields

    def strings(key):
        f = fields["tokenizer.ggml." + key]
        return [bytes(f.parts[i]).decode() for i in f.data]
    merges = [tuple(m.split(" ")) for m in strings("merges")]
    t = Tokenizer(models.BPE({x: i for i, x in enumerate(strings("tokens"))}, merges))
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return lambda text: t.encode(text).ids


def prompt_ids(encode, prompt, chat):
    if not chat:
        return encode(prompt)
    out = []
    for part in (SYSTEM, "user\n" + prompt):
        out += [START, *encode(part), END, NEWLINE]
    return out + [START, *encode("assistant\n")]


def greedy(s, ids, most):
    """Token by token: the slow way."""
    got, y = [], s.feed(ids, 64)[-1]
    while len(got) < most:
        got.append(int(y.argmax()))
        y = s.run(got[-1:])[-1]
    return got


def follows(s, ids, want):
    """Are the same tokens the best ones, in runs that are told them? And the least lead of the best."""
    y = s.feed(ids + want, 64)[len(ids) - 1:-1]
    two = np.sort(y, 1)[:, -2:]
    return y.argmax(1).tolist() == want, float((two[:, 1] - two[:, 0]).min())


def nll(s, ids):
    y = s.feed(ids, 64)[:-1].astype(np.float64)
    top = y.max(1)
    return float(np.mean(top + np.log(np.exp(y - top[:, None]).sum(1)) - y[np.arange(len(y)), ids[1:]]))


def real(library, path):
    """All prompts with floats, on vectors that every x86-64 has, as plain loops take minutes; with blocks and bytes those where no second token is near."""
    encode, wrong = tokenizer(path), []
    s = Session(library, path, "c", "sse2", precise=True, context=128, every=1)
    y = s.feed(encode("The capital of France is"), 64)[-1]
    best = [(int(i), float(y[i])) for i in y.argsort()[::-1][:5]]
    for p, chat, want, lead in PROMPTS:
        right, have = follows(s, prompt_ids(encode, p, chat), want)
        if not right or abs(have - lead) > 0.01:  # leads are written to 0.005; another order of sums moves them by 0.0001 at most, rounding to blocks by 0.03 at least
            wrong.append(f"'{p}' with floats is continued {'as it should be' if right else 'otherwise'}, the second token {have:.3f} behind, expected {lead}")
    s.close()
    s = Session(library, path, "c", context=128, every=1)
    for p, chat, want, _ in (PROMPTS[0], PROMPTS[2]):
        if not follows(s, prompt_ids(encode, p, chat), want)[0]:
            wrong.append(f"'{p}' is continued otherwise")
    p, chat, want, _ = PROMPTS[0]
    if greedy(s, prompt_ids(encode, p, chat), 6) != want[:6]:
        wrong.append(f"'{p}' is continued otherwise token by token")
    have = nll(s, encode(TEXT))
    s.close()
    s = Session(library, path, "c", context=128, every=1, cache=b"int8")
    return {"best": best, "wrong": wrong, "nll": have, "nll_int8": nll(s, encode(TEXT))}


if __name__ == "__main__":
    print(json.dumps({"chunks": chunks, "slots": slots, "real": real}[sys.argv[2]](sys.argv[1], *sys.argv[3:])))

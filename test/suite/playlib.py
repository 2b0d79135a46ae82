"""The C of a language model as a library: the tiny one of test/make/mkplay.py, twice in one program.

One has its weights inside and chunks as large as the context, the other has weights in a file and chunks of 5.
Prefill in any chunks and one token at a time give the same bits.
Ids beyond the context are refused and change nothing; rewinding works.
Text, ids and sampled tokens give the answers of `ingot play`.
Nothing uses the heap or leaves its memory; sanitizers find nothing.
"""
import os
import subprocess
from lib import cfile
from lib.core import Fail, Test, explain, need, run, tail
from suite.play import answer, made

LIMIT = 300
FLAGS = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
MODELS = (("one", ["--weights", "text"]), ("two", ["--weights", "pointer", "--chunk", "5"]))

DRIVER = r"""
#define _POSIX_C_SOURCE 200809L
#include "one.h"
#include "two.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SANITIZED
void *malloc(size_t n) { (void)n; abort(); }
void *calloc(size_t n, size_t m) { (void)n, (void)m; abort(); }
void *realloc(void *p, size_t n) { (void)p, (void)n; abort(); }
void free(void *p) { if (p) abort(); }
#endif

enum { PAD = 256, POISON = 0xa5, MOST = 200 };
typedef struct Room1 { unsigned char before[PAD], at[ONE_ARENA_BYTES], after[PAD]; } Room1;
typedef struct Room2 { unsigned char before[PAD], at[TWO_ARENA_BYTES], after[PAD]; } Room2;
static Room1 room1 __attribute__((aligned(64))), copy1;
static Room2 room2 __attribute__((aligned(64)));
static unsigned char weights[TWO_WEIGHT_BYTES] __attribute__((aligned(64)));
static float logits[ONE_VOCAB], first[ONE_VOCAB], other[ONE_VOCAB];
static int32_t ids[ONE_CONTEXT], past[ONE_CONTEXT];
static uint64_t work[ONE_TOKENIZE_BYTES(MOST) / 8 + 1];
static uint32_t choice[ONE_SAMPLE_BYTES / 4];
static char piece[ONE_PIECE_BYTES], text[MOST];
static unsigned char said[MOST];

static void check(int line, int fine) {
  char word[40];
  int n;
  if (fine) return;
  n = snprintf(word, sizeof word, "line %d\n", line);
  if (write(2, word, (size_t)n) < 0) abort();
  _exit(1);
}
#define CHECK(x) check(__LINE__, (x) != 0)
#define SAME(a, b) CHECK(!memcmp((a), (b), sizeof logits))

/* A refusal changes neither the arena nor the logits. */
static void refuse(int want, const int32_t *at, size_t n) {
  memcpy(&copy1, &room1, sizeof room1);
  memcpy(other, logits, sizeof logits);
  CHECK(one_prefill(room1.at, at, n, logits) == want);
  CHECK(!memcmp(&copy1, &room1, sizeof room1));
  SAME(other, logits);
}

static void chunks(size_t n) {
  int32_t bad = ONE_VOCAB, low = -1;
  two_reset(room2.at);
  CHECK(two_prefill(room2.at, weights, ids, n, other) == 0 && two_position(room2.at) == (int64_t)n);
  SAME(other, first);
  two_reset(room2.at);
  for (size_t i = 0; i < n; i++) CHECK(two_decode(room2.at, weights, ids[i], other) == 0);
  SAME(other, first);
  CHECK(one_rewind(room1.at, (int64_t)n + 1) == 2 && one_rewind(room1.at, -1) == 2);
  CHECK(one_rewind(room1.at, (int64_t)n - 2) == 0 && one_position(room1.at) == (int64_t)n - 2);
  CHECK(one_prefill(room1.at, ids + n - 2, 2, logits) == 0);
  SAME(logits, first);
  for (size_t i = 0; i < ONE_CONTEXT; i++) past[i] = ids[i % n];
  refuse(5, past, ONE_CONTEXT - n + 1);
  refuse(5, past, (size_t)-1);
  refuse(2, past, 0);
  refuse(2, &bad, 1);
  refuse(2, &low, 1);
  CHECK(one_prefill(room1.at, past, ONE_CONTEXT - n, logits) == 0 && one_position(room1.at) == ONE_CONTEXT);
  refuse(5, past, 1);
  CHECK(one_rewind(room1.at, (int64_t)n) == 0);
}

static void misuse(void) {
  CHECK(one_position(NULL) == -1 && one_position(room1.at + 8) == -1 && one_position(room1.at) == -1);
  CHECK(one_prefill(NULL, ids, 1, logits) == 1 && one_prefill(room1.at + 8, ids, 1, logits) == 1);
  CHECK(one_prefill(room1.at, ids, 1, logits) == 5); /* never cleared */
  CHECK(one_prefill(room1.at, NULL, 1, logits) == 2 && one_prefill(room1.at, ids, 1, NULL) == 2 && one_decode(room1.at, 1, NULL) == 2);
  CHECK(one_tokenize(NULL, 1, NULL, 0, ids, 1, work, sizeof work) == -2 && one_tokenize("a", 1, NULL, 0, NULL, 1, work, sizeof work) == -2);
  CHECK(one_tokenize("a", 1, NULL, 0, ids, 1, NULL, sizeof work) == -2 && two_tokenize(NULL, "a", 1, NULL, 0, ids, 1, work, sizeof work) == -4);
  CHECK(one_detokenize(NULL, 1, piece) == 0 && one_detokenize(&(one_stream){0}, 1, NULL) == 0 && two_ends(NULL, 1) == 0);
  CHECK(two_detokenize(NULL, &(two_stream){0}, 1, piece) == 0);
  CHECK(one_sample(NULL, logits, ids, 0, choice) == -1 && one_sample(&(one_sampler){0}, NULL, ids, 0, choice) == -1);
  CHECK(one_sample(&(one_sampler){0}, logits, NULL, 1, choice) == -1 && one_sample(&(one_sampler){0}, logits, ids, 1, NULL) == -1);
  CHECK(one_rewind(room1.at, 0) == 2 && one_rewind(NULL, 0) == 1);
  two_reset(room2.at);
  CHECK(two_decode(room2.at, weights + 64, 5, logits) == 4 && two_position(room2.at) == 0);
  CHECK(two_tokenize(NULL, "a", 1, NULL, 0, ids, 1, work, sizeof work) == -4);
  CHECK(two_ends(weights + 64, 0) == 0 && two_ends(weights, 0) == 1 && one_ends(0) == 1 && one_ends(9) == 0);
  CHECK(one_tokenize("xyz", 3, NULL, 0, ids, 2, work, sizeof work) == -1);
  CHECK(one_tokenize("xyz", 3, NULL, 0, ids, 3, work, 8) == -2 && one_tokenize("xyz", 3, NULL, 0, ids, 3, NULL, 0) == -2);
  CHECK(one_tokenize("<end>", 5, NULL, ONE_SPECIAL, ids, 9, work, sizeof work) == 1 && ids[0] == 0);
  CHECK(one_tokenize("<end>", 5, NULL, 0, ids, 9, work, sizeof work) == 5);
}

static size_t add(size_t n, const char *what, int by_somebody) {
  memcpy(text + n, what, strlen(what));
  memset(said + n, by_somebody, strlen(what));
  return n + strlen(what);
}

int main(int argc, char **argv) {
  one_sampler s;
  one_stream stream;
  size_t n = 0, got, tokens;
  memset(&s, 0, sizeof s);
  memset(&stream, 0, sizeof stream);
  memset(&room1, POISON, sizeof room1);
  memset(&room2, POISON, sizeof room2);
  CHECK(argc == 5);
  for (size_t all = 0; all < sizeof weights;) {
    ssize_t some = read(0, weights + all, sizeof weights - all);
    CHECK(some > 0);
    all += (size_t)some;
  }
  misuse();
  if (*argv[1] == 'c') n = add(n, ONE_CHAT_OPEN, 0);
  n = add(n, argv[2], 1);
  if (*argv[1] == 'c') n = add(n, ONE_CHAT_ASK, 0);
  CHECK(two_tokenize(weights, text, n, said, *argv[1] == 'c' ? TWO_SPECIAL : TWO_AROUND, past, ONE_CONTEXT, work, sizeof work) > 1);
  tokens = (size_t)one_tokenize(text, n, said, *argv[1] == 'c' ? ONE_SPECIAL : ONE_AROUND, ids, ONE_CONTEXT, work, ONE_TOKENIZE_BYTES(n));
  CHECK(tokens > 1 && tokens < ONE_CONTEXT && !memcmp(ids, past, tokens * 4));
  one_reset(room1.at);
  CHECK(one_prefill(room1.at, ids, tokens, first) == 0 && one_position(room1.at) == (int64_t)tokens);
  chunks(tokens);
  memcpy(logits, first, sizeof logits);
  s.temperature = (float)(argv[3][0] - '0');
  s.state = (uint64_t)(argv[4][0] - '0');
  for (int i = 0; i < 12; i++) {
    int32_t id = one_sample(&s, logits, ids, tokens, choice);
    if (one_ends(id)) break;
    got = one_detokenize(&stream, id, piece);
    CHECK(got <= sizeof piece && write(1, piece, got) == (ssize_t)got);
    ids[tokens++] = id;
    CHECK(one_decode(room1.at, id, logits) == 0);
  }
  got = one_detokenize(&stream, -1, piece);
  CHECK(write(1, piece, got) == (ssize_t)got && one_detokenize(&stream, ONE_VOCAB, piece) == 0);
  for (int i = 0; i < PAD; i++)
    CHECK(room1.before[i] == POISON && room1.after[i] == POISON && room2.before[i] == POISON && room2.after[i] == POISON);
  return 0;
}
"""


def library(env, here):
    for name, more in MODELS:
        got = run([env.need_ingot(), "compile", made(env), "-o", os.path.join(here, name + ".c"), "--march", "scalar", "--context", "64", *more], LIMIT)
        if got.rc:
            raise Fail(explain(got) + tail(got.text()))
    with open(os.path.join(here, "main.c"), "w") as f:
        f.write(DRIVER)


def link(here, compiler, *more):
    program = os.path.join(here, "main-" + compiler)
    cfile.cc([need(compiler), *FLAGS, *more, "-I", here, "-o", program, *(os.path.join(here, n) for n in ("main.c", "one.c", "two.c"))], "a program around two language models")
    return program


def said_by(here, program, *args):
    with open(os.path.join(here, "two.bin"), "rb") as f:
        got = run([program, *args], LIMIT, stdin=f.read())
    if got.rc or got.timed_out:
        raise Fail(f"{' '.join(args)}: {explain(got)}: {tail(got.text(), 6)}")
    return got.out.decode()


def plays(env):
    here = env.scratch("playlib")
    library(env, here)
    plain, careful = link(here, "gcc"), link(here, "clang", "-DSANITIZED", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    draw = ("--top-k", "0", "--top-p", "1", "--max-tokens", "12")
    for form, prompt, temperature, seed in (("raw", "abc", "0", "1"), ("chat", "abc", "0", "1"), ("chat", "a<end>b", "5", "3")):
        want = answer(env, "-p", prompt, "--temperature", temperature, "--seed", seed, *draw, *(["--raw"] if form == "raw" else []))
        for program in (plain, careful):
            got = said_by(here, program, form, prompt, temperature, seed)
            if got + "\n" != want or len(got) < 6:
                raise Fail(f"{prompt!r}: {got!r}, and play says {want!r}")


def objects(env):
    """The built file has only names of the model, needs only memory moves, and has no writable data."""
    here = env.scratch("playlib", "objects")
    path = os.path.join(here, "libtalk.a")
    got = run([env.need_ingot(), "build", made(env), "-o", path, "--march", "scalar", "--context", "64"], LIMIT)
    if got.rc:
        raise Fail(explain(got) + tail(got.text()))
    names = subprocess.run([need("nm"), path], capture_output=True, text=True, check=True).stdout.split("\n")
    for line in names:
        words = line.split()
        if len(words) < 2:
            continue
        kind, name = words[-2:]
        if kind == "U" and name not in ("memcpy", "memmove", "memset", "memcmp", "_GLOBAL_OFFSET_TABLE_") or kind in "DBCdb" or (kind.isupper() and kind != "U" and not name.startswith("talk_")):
            raise Fail(f"{kind} {name}")
    for name in ("prefill", "decode", "position", "rewind", "tokenize", "detokenize", "ends", "sample"):
        if not any(line.endswith(" T talk_" + name) for line in names):
            raise Fail(f"no talk_{name}")


WINDOW = r"""
#include "ring.h"
#include <stdio.h>
#include <string.h>
static unsigned char arena[RING_ARENA_BYTES] __attribute__((aligned(64)));
static float y[RING_VOCAB], first[RING_VOCAB];
int main(void) {
  int32_t ids[50];
  for (int i = 0; i < 50; i++) ids[i] = 4 + i * 37 % 200;
  ring_reset(arena);
  if (ring_prefill(arena, ids, 20, first) || ring_rewind(arena, 3) || ring_prefill(arena, ids + 3, 17, y) || memcmp(y, first, sizeof y)) return 1;
  if (ring_prefill(arena, ids + 20, 30, first) || ring_rewind(arena, 40) != 2 || ring_position(arena) != 50 || ring_rewind(arena, 50)) return 2;
  if (ring_rewind(arena, 0) || ring_prefill(arena, ids, 50, y) || memcmp(y, first, sizeof y)) return 3;
  return 0;
}
"""


def window(env):
    """Layers with a window of 16 keep 16 tokens and those of one run: overwritten positions cannot be restored, all others can."""
    here = env.scratch("playlib", "window")
    path, driver, program = (os.path.join(here, name) for name in ("ring.c", "main.c", "prog"))
    with open(driver, "w") as f:
        f.write(WINDOW)
    model = os.path.join(os.path.dirname(made(env)), "window.gguf")
    sizes = []
    for chunk in ("64", "5"):
        got = run([env.need_ingot(), "compile", model, "-o", path, "--march", "scalar", "--context", "64", "--chunk", chunk, "--quiet"], LIMIT)
        if got.rc:
            raise Fail(explain(got) + tail(got.text()))
        with open(path[:-1] + "h") as f:
            sizes.append(cfile.macro(f.read(), "RING_ARENA_BYTES"))
    if sizes[0] - sizes[1] < 2 * 2 * 2 * 16 * 2 * (64 - 16 - 5):  # layers, keys and values, heads, head size, bytes, positions
        raise Fail(f"arenas of {sizes} bytes")
    cfile.cc([need("gcc"), *FLAGS, "-Wno-overlength-strings", "-o", program, driver, path, "-lm"], "gcc")
    got = run([program], LIMIT)
    if got.rc:
        raise Fail(f"step {got.rc} gives something else")


def chunk(env):
    """The default number of tokens per run: as many as fit in the context, and no more than pays."""
    path = os.path.join(env.scratch("playlib", "chunk"), "m.c")
    for context, want in (("512", 128), ("64", 64)):
        got = run([env.need_ingot(), "compile", made(env), "-o", path, "--march", "scalar", "--context", context, "--quiet"], LIMIT)
        if got.rc:
            raise Fail(explain(got) + tail(got.text()))
        with open(path[:-1] + "h") as f:
            took = cfile.macro(f.read(), "M_CHUNK")
        if took != want:
            raise Fail(f"a run takes {took} tokens of {context}, expected {want}")


def stack(env):
    here = env.scratch("playlib", "stack")
    path = os.path.join(here, "deep.c")
    got = run([env.need_ingot(), "compile", made(env), "-o", path, "--march", "scalar", "--context", "64"], LIMIT)
    if got.rc:
        raise Fail(explain(got) + tail(got.text()))
    cfile.cc([need("gcc"), "-std=c99", "-O0", "-fcallgraph-info=su", "-c", "-o", path[:-1] + "o", path], "gcc")
    with open(path[:-1] + "ci") as f, open(path[:-1] + "h") as h:
        calls, bound = f.read(), cfile.macro(h.read(), "DEEP_STACK_BYTES")
    for name in ("prefill", "decode", "rewind", "tokenize", "detokenize", "ends", "sample"):
        used = cfile.deepest(calls, "deep_" + name)
        if not 0 < used <= bound:
            raise Fail(f"{name}: {used} bytes of stack, the header says {bound}")


def tests(env):
    return [Test("playlib/plays", lambda: plays(env), cost=12), Test("playlib/objects", lambda: objects(env), cost=4), Test("playlib/chunk", lambda: chunk(env), cost=1), Test("playlib/stack", lambda: stack(env), cost=2), Test("playlib/window", lambda: window(env), cost=2)]

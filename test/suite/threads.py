"""Threads (--threads): the bits of a build for one thread, for any number of threads, starts and arenas, and if threads cannot
be created; ThreadSanitizer finds no race.

Every model is compiled twice into one program that compares the results: for one thread, and with every possible loop parallel
(--threads-grain 1).
Each kind of model is one test: the corpus of suite/promises.py, networks on vectors, whole models.
"""
import os
import re
import shutil
from lib import cfile, cpu
from lib.core import ROOT, Fail, Test, explain, need, run, tail
from suite import promises, whole

FEW = 3
NETS = ("mobile21", "dense32", "grouped", "bytes19", "attention")
SIZES = {"f64": 8, "i64": 8, "u64": 8, "f32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2, "i16": 2, "u16": 2}

# Two runs of a model in a row, so that state is compared too; sizes at their bounds, then about half of them.
DRIVER = """#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, RUNS = 2 };
typedef int Call(void *arena, const int64_t *size, uint64_t seed, const void *const *in, void *const *out, int64_t *const *shape);
typedef int Start(void *arena, int threads);
typedef void Stop(void *arena);
typedef struct Value { char kind; size_t width, n; } Value;
typedef struct Case {
  const char *name;
  Call *one, *many;
  Start *start; /* NULL: OpenMP */
  Stop *stop;
  size_t one_bytes, many_bytes;
  int nin, nout, nsize;
  Value in[MOST], out[MOST];
  int64_t most[MOST];
} Case;
typedef struct Result { int status[RUNS]; int64_t shape[RUNS][MOST][16]; unsigned char *out[RUNS][MOST]; } Result;
typedef struct Job { const Case *c; const int64_t *size; const void *const *in; const Result *want; int threads, bad; } Job;

static int fail_after = -1; /* pthread_create works so often; -1: always */
#ifdef WRAP
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg) {
  if (!fail_after) return 11;
  if (fail_after > 0) fail_after--;
  return __real_pthread_create(t, a, fn, arg);
}
#endif

static void *get(size_t n) {
  void *p = aligned_alloc(64, (n + 127) / 64 * 64);
  memset(p, 0, (n + 127) / 64 * 64);
  return p;
}

static void fill(const Value *v, unsigned char *to) {
  uint32_t x = 12345;
  for (size_t i = 0; i < v->n; i++) {
    x = x * 1664525 + 1013904223;
    double r = (int)(x >> 8 & 0xffff) / 32768.0 - 1;
    uint64_t whole = x >> 24 & 1;
    if (v->kind == 'f' && v->width == 4) ((float *)(void *)to)[i] = (float)r;
    else if (v->kind == 'f' && v->width == 8) ((double *)(void *)to)[i] = r;
    else if (v->kind == 'f') ((uint16_t *)(void *)to)[i] = (uint16_t)(0x3800 + (x >> 24 & 63));
    else memcpy(to + i * v->width, &whole, v->width); /* little end first */
  }
}

static void take(const Case *c, Call *fn, void *arena, const int64_t *size, const void *const *in, Result *r) {
  for (int k = 0; k < RUNS; k++) {
    int64_t *shape[MOST + 1];
    void *out[MOST + 1];
    for (int i = 0; i < c->nout; i++) {
      size_t n = c->out[i].width * c->out[i].n;
      if (!r->out[k][i]) r->out[k][i] = get(n);
      memset(out[i] = r->out[k][i], 0x5a, n);
      memset(shape[i] = r->shape[k][i], 0, sizeof r->shape[k][i]);
    }
    r->status[k] = fn(arena, size, 7, in, out, shape);
  }
}

static void drop(const Case *c, Result *r) {
  for (int k = 0; k < RUNS; k++)
    for (int i = 0; i < c->nout; i++) free(r->out[k][i]);
}

static int differ(const Case *c, const Result *a, const Result *b) {
  if (memcmp(a->status, b->status, sizeof a->status) || memcmp(a->shape, b->shape, sizeof a->shape)) return 1;
  for (int k = 0; k < RUNS; k++)
    for (int i = 0; i < c->nout && !a->status[k]; i++)
      if (memcmp(a->out[k][i], b->out[k][i], c->out[i].width * c->out[i].n)) return 1;
  return 0;
}

/* In an arena of its own; threads are started for each of two rounds. 0: they are not started. */
static void *check(void *arg) {
  Job *j = arg;
  const Case *c = j->c;
  Result r = {{0}};
  unsigned char *arena = get(c->many_bytes);
  for (int round = 0; round < 2 && !j->bad; round++) {
    memset(arena, 0, c->many_bytes); /* as a reset leaves the state */
    int got = c->start && j->threads ? c->start(arena, j->threads) : 1;
    if (got < 1 || got > THREADS || (fail_after < 0 && j->threads && c->start && got != 1 && got != (j->threads < THREADS ? j->threads : THREADS)))
      j->bad = printf("%s: %d threads started, %d asked for\\n", c->name, got, j->threads);
    take(c, c->many, arena, j->size, j->in, &r);
    if (c->start && j->threads) c->stop(arena);
    if (differ(c, &r, j->want)) j->bad = printf("%s: other bits with %d threads (status %d, %d)\\n", c->name, j->threads, r.status[0], j->want->status[0]);
  }
  drop(c, &r);
  free(arena);
  return NULL;
}

static int compare(const Case *c, const int64_t *size, const int *numbers) {
  Result want = {{0}};
  void *in[MOST + 1] = {0}, *arena = get(c->one_bytes);
  int bad = 0;
  for (int i = 0; i < c->nin; i++) fill(&c->in[i], in[i] = get(c->in[i].width * c->in[i].n));
  take(c, c->one, arena, size, (const void *const *)in, &want);
  for (int k = 0; numbers[k] >= 0 && !bad; k++) {
    Job j = {c, size, (const void *const *)in, &want, numbers[k], 0};
    check(&j);
    bad = j.bad;
  }
#ifdef WRAP
  for (int k = 0; k < 2 && c->start && !bad; k++) { /* no thread, then one, can be had */
    Job j = {c, size, (const void *const *)in, &want, 3, 0};
    fail_after = k;
    check(&j);
    bad = j.bad;
  }
#endif
  fail_after = -1;
  Job two[2] = {{c, size, (const void *const *)in, &want, THREADS, 0}, {c, size, (const void *const *)in, &want, 2, 0}};
  pthread_t other; /* two arenas at once */
  if (!bad && pthread_create(&other, NULL, check, &two[1]) == 0) {
    check(&two[0]);
    pthread_join(other, NULL);
    bad = two[0].bad || two[1].bad;
  }
  for (int i = 0; i < c->nin; i++) free(in[i]);
  drop(c, &want);
  free(arena);
  return bad;
}

HEADERS
static const Case cases[] = {
CASES};

int main(void) {
  static const int all[] = {0, 1, 2, 3, 8, -1}, some[] = {2, THREADS + 5, -1};
  int bad = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t size[MOST];
    for (int half = 0; half <= (cases[i].nsize > 0); half++) {
      for (int k = 0; k < cases[i].nsize; k++) size[k] = half ? (cases[i].most[k] + 1) / 2 : cases[i].most[k];
      bad |= compare(&cases[i], size, SOME ? some : all);
    }
  }
  return bad ? 1 : 0;
}
"""


class Pair:
    """A model for one thread (NAME) and for several (NAME followed by s)."""

    def __init__(self, env, folder, name, origin, args, more, threads):
        self.name, self.origin, self.folder = name, origin, folder
        made = [promises.emit(env, ["compile", *args, "--caller", "--no-selftest", *extra], n, folder)
                for n, extra in ((name, []), (name + "s", ["--threads", str(threads), "--threads-grain", "1", *more]))]
        self.fine = all(made)
        if self.fine:
            self.source, self.header = made[1]
            self.one = made[0][1]
            self.shared = "ig_parallel_for(" in self.source
            if re.search(r"pthread|__atomic|ig_parallel_for", made[0][0]):
                raise Fail(f"{origin}: threads in a file for one thread")

    def __str__(self):
        return f"{self.name}s ({self.origin})"

    def line(self):
        """Its row of the table."""
        up, h = self.name.upper() + "S", self.header

        def values(what):
            rows = []
            for k in range(cfile.macro(h, f"{up}_{what}S")):
                kind = re.search(rf'#define {up}_{what}{k}_TYPE "(\w+)"', h)[1]
                rows.append(f"{{'{'f' if 'f' in kind else 'i'}', {SIZES.get(kind, 1)}, {cfile.macro(h, f'{up}_{what}{k}_ELEMENTS')}}}")
            return len(rows), "{" + ", ".join(rows or ["{0, 0, 0}"]) + "}"
        most = re.findall(rf"#define {up}_SIZE\d+_MAX (\d+)", h)
        nin, ins = values("INPUT")
        nout, outs = values("OUTPUT")
        if max(nin, nout, len(most)) > 16:
            return ""
        start = f"{self.name}s_threads_start, {self.name}s_threads_stop" if "_threads_start" in h else "NULL, NULL"
        return (f'  {{"{self.origin}", {self.name}_call, {self.name}s_call, {start}, {cfile.macro(self.one, up[:-1] + "_ARENA_BYTES")}, '
                f"{cfile.macro(h, up + '_ARENA_BYTES')}, {nin}, {nout}, {len(most)}, {ins}, {outs}, {{{', '.join(most or ['0'])}}}}},\n")


def pairs(env, what, models, more=(), threads=FEW):
    """models: (origin, arguments). Refused models are left out; at least one loop must be parallel."""
    folder = env.scratch("threads", what)
    made = [Pair(env, folder, f"m{i}", origin, args, more, threads) for i, (origin, args) in enumerate(models)]
    made = [p for p in made if p.fine and p.line()]
    if not any(p.shared for p in made):
        raise Fail("nothing is shared out")
    return folder, made


def build_and_run(folder, made, flags, some=False, wrap=False, around=None, threads=FEW):
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-ffp-contract=off", *flags]

    def compile_one(p):
        for name in (p.name, p.name + "s"):
            cfile.cc([*command, f"-Wa,-I{folder}", "-c", "-o", os.path.join(folder, name + ".o"), os.path.join(folder, name + ".c")], f"compiling {name}.c")
        cfile.check_data(os.path.join(folder, p.name + "s.o"))
    promises.each(made, compile_one)
    lines = [f'#include "{p.name}.h"\n#include "{p.name}s.h"\nCall {p.name}_call, {p.name}s_call;' for p in made]
    main, program = os.path.join(folder, "main.c"), os.path.join(folder, "main")
    with open(main, "w") as f:
        f.write(DRIVER.replace("HEADERS", "\n".join(lines)).replace("CASES", "".join(p.line() for p in made)).replace("SOME", str(int(some)))
                .replace("THREADS", str(threads)))
    cfile.cc(["gcc", "-O1", *flags, *(["-DWRAP", "-Wl,--wrap=pthread_create"] if wrap else []), "-I", folder, "-o", program, main,
              *[os.path.join(folder, p.name + s + ".o") for p in made for s in ("", "s")], "-lm", "-lpthread"], "linking")
    got = run(["setarch", "-R", program] if around and shutil.which("setarch") else [program], 240, env=around)
    if got.rc or got.timed_out:
        raise Fail(f"{explain(got)}: {tail(got.out.decode() + got.text(), 8)}")


def corpus(env, part=0, of=1):
    models = [(o, a) for o, a in promises.choose(env) if "--weights" not in a and not o.endswith(".onnx")]
    return models[part::of]


def vectors():
    return cpu.flags("avx2") if cpu.can_run("avx2") else []


def march():
    return ["--march", "avx2" if vectors() else "sse2"]


def networks(env):
    folder = os.path.join(env.build, "targets")
    env.generated(folder, ["make/mktargets.py", "requirements.txt"], lambda: env.script("mktargets.py", folder))
    return [(n, [os.path.join(folder, n + ".onnx"), *march()]) for n in NETS]


def graphs(env):
    """Every third model with OpenMP threads in the next test."""
    need("gcc")
    folder, made = pairs(env, "graphs", corpus(env))
    build_and_run(folder, made, [], wrap=True)


def openmp(env):
    need("gcc")
    folder, made = pairs(env, "openmp", corpus(env, 1, 4), ["--threads-api", "openmp"])
    build_and_run(folder, made, ["-fopenmp"], some=True)
    build_and_run(folder, made, [], some=True)  # a compiler without OpenMP: one thread


def nets(env):
    need("gcc")
    folder, made = pairs(env, "nets", networks(env))
    build_and_run(folder, made, vectors(), some=True, wrap=True)


def many(env):
    """The default number of threads is the number of cores, at most 16; at least 4 here, because tests use 3."""
    need("gcc")
    n = min(16, max(4, len(os.sched_getaffinity(0))))
    folder, made = pairs(env, "many", corpus(env, 2, 6) + networks(env), threads=n)
    build_and_run(folder, made, vectors(), some=True, threads=n)


def big(env):
    """BERT of every length up to a bound, and a detector whose number of boxes depends on the image."""
    need("gcc")
    made = whole.Work(env, "bert").made
    models = [("bert", [os.path.join(made, "bert.onnx"), "--max-shapes", "input_ids:1x48,attention_mask:1x48"]),
              ("yolo", [os.path.join(made, "yolo.onnx")])]
    silero = os.path.join(env.build, "models", "silero_vad_v6.onnx")
    if os.path.exists(silero):
        models.append(("silero", [silero, "--shapes", "input:1x576", "--state", "h=hn", "--state", "c=cn"]))
    folder, made = pairs(env, "big", [(o, [*a, *march(), "--weights", "file"]) for o, a in models])
    build_and_run(folder, made, vectors(), some=True)


def races(env):
    need("gcc")
    folder, made = pairs(env, "races", corpus(env, 0, 3) + networks(env)[:2])
    build_and_run(folder, made, ["-g1", "-fsanitize=thread", *vectors()], some=True,
                  around={"TSAN_OPTIONS": "exitcode=99:halt_on_error=1"})


def planted(env):
    """ThreadSanitizer finds overlapping chunks, and the comparison finds a missing chunk."""
    need("gcc")
    folder, made = pairs(env, "planted", [("digits", [promises.DIGITS, "-d", "batch=1"])])
    path = os.path.join(folder, "m0s.c")
    with open(path) as f:
        text = f.read()
    for old, new, flags in (("to = j->count - from < j->chunk ? j->count : from + j->chunk;", "to = j->count;", ["-fsanitize=thread"]),
                            ("    ig_run_range(j, w, from, to);", "    if (c != 2) ig_run_range(j, w, from, to);", [])):
        if old not in text:
            raise Fail(f"'{old}' does not stand in the file")
        with open(path, "w") as f:
            f.write(text.replace(old, new))
        try:
            build_and_run(folder, made, flags, some=True, around={"TSAN_OPTIONS": "exitcode=99"})
        except Fail:
            continue
        raise Fail(f"a planted fault is not noticed: {new}")


def marks(env):
    """Text with parallel marks on loops that the pass would not mark compiles to sequential C."""
    folder = env.scratch("threads", "marks")
    source = os.path.join(folder, "marks.c")
    got = run([env.need_ingot(), "compile", os.path.join(ROOT, "test", "exec", "prog", "parallel_part_of_kernel.t"), "-o", source], 60)
    if got.rc:
        raise Fail(f"{explain(got)}: {tail(got.text())}")
    cfile.cc(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-c", "-o", os.path.join(folder, "marks.o"), source], "marks")


def tests(env):
    return [Test(f"threads/{fn.__name__}", lambda fn=fn: fn(env), cost=15)
            for fn in (graphs, openmp, nets, many, big, races, planted, marks)]

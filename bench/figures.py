#!/usr/bin/env python3
"""Measures the figures of src/ir/target.def on this machine: small kernels in C, and a few layers through ingot.

    bench/figures.py [FIGURE ...] [--march sse2|avx2|avx512] [--cc gcc] [--ingot build/ingot]

Without names: all figures, for every target that this machine can run; needs python3, gcc and, for pack_rows and sparse, ingot. Prints one line per figure: its name,
the value that the measurement suggests, the value of the table, and the measurement. Every time is the minimum of many short runs, so
a busy machine gives the same figures, only later. A person judges the suggestion: neighboring values often differ by less than one
percent. Change the table only if whole networks become faster (bench/run).
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test"))
from lib import target_table  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NEEDS = {"sse2": "sse2", "avx2": "avx2", "avx512": "avx512_vnni"}
ROWS = {name: row for name, row in target_table.targets().items() if name in NEEDS}
FLAGS = {name: row["cflags"].split() for name, row in ROWS.items()}
FLAGS["avx512"] += ["-mavx512vnni", "-mprefer-vector-width=512"]
LANES = {name: int(row["lanes"]) for name, row in ROWS.items()}
REGISTERS = {name: int(row["regs"]) for name, row in ROWS.items()}

HEAD = """
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
typedef float V __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int I __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static float *memory(size_t bytes) { float *p = aligned_alloc(64, bytes + 4096); for (size_t i = 0; i < bytes / 4 + 1024; i++) p[i] = 1e-3f; return p; }
#define LEAST(to, what) do { to = 1e30; for (int r_ = 0; r_ < RUNS; r_++) { double s_ = now(); what; s_ = now() - s_; if (s_ < to) to = s_; } } while (0)
#ifdef __FMA__
#define MADD(a, b, c) ((a) * (b) + (c))
#else
#define MADD(a, b, c) ((c) + (a) * (b))
#endif
#define KEEP(v) __asm__ volatile("" : "+x"(v))
"""


class Machine:
    def __init__(self, march, args, folder):
        self.march, self.args, self.folder, self.lanes = march, args, folder, LANES[march]
        self.count = 0

    def run(self, text, *more, runs=300):
        """Output of a program: HEAD, then text."""
        self.count += 1
        path = os.path.join(self.folder, f"f{self.count}")
        with open(path + ".c", "w") as f:
            f.write(f"#define LANES {self.lanes}\n#define RUNS {runs}\n" + HEAD + text)
        subprocess.run([self.args.cc, "-O2", "-ffp-contract=fast", "-fno-tree-vectorize", *FLAGS[self.march], path + ".c", "-o", path, "-lm", *more], check=True)
        return [[float(x) for x in line.split()] for line in subprocess.run([path], check=True, capture_output=True, text=True).stdout.splitlines()]

    def bench(self, name, text):
        """Milliseconds of a model."""
        path = os.path.join(self.folder, name + ".ing")
        with open(path, "w") as f:
            f.write(text)
        got = subprocess.run([self.args.ingot, "bench", path, "--engine", "c", "--march", self.march, "--seconds", "0.5", "--json"],
                             check=True, capture_output=True, text=True).stdout
        return float(re.search(r'"min_ms":([0-9.e+-]+)', got).group(1))


def tile(rows, panels, name, steps=256):
    """A tile of accumulators: each step loads `panels` vectors from L2 and `rows` elements from L1. Written out as C compilers see it."""
    sums = [f"s{i}_{v}" for i in range(rows) for v in range(panels)]
    out = [f"static void {name}(const float *a, const float *w, float *y) {{"] + [f"  V {s} = {{0}};" for s in sums]
    out.append(f"  for (int k = 0; k < {steps}; k++) {{")
    out += [f"    V b{v} = *(const V *)(w + (k * {panels} + {v}) * LANES); KEEP(b{v});" for v in range(panels)]
    for i in range(rows):
        out.append(f"    {{ V x = a[k * {rows} + {i}] - (V){{0}}; " + " ".join(f"s{i}_{v} = MADD(x, b{v}, s{i}_{v});" for v in range(panels)) + " }")
    out.append("  }")
    out += [f"  *(V *)(y + {n} * LANES) = {s};" for n, s in enumerate(sums)] + ["}"]
    return "\n".join(out)


def tile_rates(m, shapes, part=tile, lanes=None):
    """ns of one step, by (rows, panels). Weights of 256 KiB come from L2."""
    was, m.lanes = m.lanes, lanes or m.lanes
    text = "\n".join(part(r, v, f"t{r}_{v}") for r, v in shapes)
    calls = "\n".join(f"  {{ int n = (256 << 10) / (256 * {v} * LANES * 4), p = 0; LEAST(t, t{r}_{v}(a, w + (size_t)(p++ % n) * 256 * {v} * LANES, y)); "
                      f'printf("%d %d %g\\n", {r}, {v}, t / 256); }}' for r, v in shapes)
    found = m.run(text + "\nint main(void) { double t; float *a = memory(1 << 16), *w = memory(1 << 20), *y = memory(1 << 16);\n" + calls + "\n}")
    m.lanes = was
    return {(int(r), int(v)): t for r, v, t in found}


def sums(m):
    """Largest number of accumulators at full speed; rows and panels beyond which speed does not grow."""
    most = REGISTERS[m.march]
    shapes = [(r, v) for v in range(1, 7) for r in range(1, 17) if r * v <= most]
    rate = {s: s[0] * s[1] / t for s, t in tile_rates(m, shapes).items()}
    best = max(rate.values())
    full = [s for s in rate if rate[s] > 0.95 * best]
    tall = min(r for r in range(1, 17) if max(rate[s] for s in rate if s[0] <= r) > 0.98 * best)
    wide = min(v for v in range(1, 7) if max(rate[s] for s in rate if s[1] <= v) > 0.98 * best)
    one = max((r for r in range(1, 17) if (r, 1) in rate), key=lambda r: rate[r, 1])
    seen = " ".join(f"{r}x{v}:{rate[r, v] / best:.2f}" for r, v in sorted(full, key=lambda s: -rate[s])[:6])
    return [("sums", max(r * v for r, v in full), f"{best:.2f} multiply-adds of {m.lanes} lanes a ns; {seen}"),
            ("tile_rows", max(tall, one), f"full speed from {tall} rows on; one panel is fastest with {one}"), ("tile_panels", wide, "")]


def loads(m):
    """Time of a step = multiply-adds + a * panels + b * rows, by least squares over tiles that fit."""
    shapes = [(r, v) for v in (1, 2, 3, 4) for r in range(2, 15) if 8 <= r * v <= (26 if m.march == "avx512" else 12)]
    at = [((float(r * v), float(v), float(r)), t) for (r, v), t in tile_rates(m, shapes).items()]
    a = [[sum(x[i] * x[j] for x, _ in at) for j in range(3)] + [sum(x[i] * t for x, t in at)] for i in range(3)]
    for i in range(3):  # Gauss-Jordan elimination
        a[i] = [x / a[i][i] for x in a[i]]
        for k in range(3):
            if k != i:
                a[k] = [x - a[k][i] * y for x, y in zip(a[k], a[i])]
    each = a[0][3]
    return [("vector_load", round(a[1][3] / each, 1), f"a multiply-add takes {each:.3f} ns"), ("element_load", round(a[2][3] / each, 1), "")]


def byte_widen(m):
    """Time to convert a vector of int8 to float and multiply, minus the time to load and multiply floats."""
    text = """
#if defined __AVX512F__
#define WIDEN(p) _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p))))
#elif defined __AVX2__
#define WIDEN(p) _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p))))
#else
#define WIDEN(p) _mm_cvtepi32_ps(_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_loadu_si32(p), _mm_setzero_si128()), _mm_setzero_si128()))
#endif
"""
    ways = {"madd": "x", "floats": "*(const V *)(a + k * LANES)",
            "bytes": "(V)WIDEN((const unsigned char *)a + k * LANES)"}
    for name, x in ways.items():
        body = " ".join(f"{{ V z = {x.replace('k *', f'(k + {i}) *')}; s{i} = MADD(z, y, s{i}); }}" for i in range(8))
        text += f"static void {name}(const float *a, float *to) {{ V x = {{0}}, y = {{0}}; KEEP(x); KEEP(y); " + " ".join(f"V s{i} = {{0}}; KEEP(s{i});" for i in range(8))
        text += f" for (int k = 0; k < 256; k += 8) {{ {body} }} " + " ".join(f"*(V *)(to + {i} * LANES) = s{i};" for i in range(8)) + " }\n"
    calls = "".join(f'LEAST(t, {name}(a, z)); printf("%g\\n", t / 256);\n' for name in ways)
    madd, floats, widened = (t for t, in m.run(text + "int main(void) { double t; float *a = memory(1 << 16), *z = memory(1 << 16);\n" + calls + "}", runs=3000))
    return [("byte_widen", round(max(widened - floats, 0) / madd, 1), f"a multiply-add takes {madd:.3f} ns, with floats that are loaded {floats:.3f}, with bytes {widened:.3f}")]


def fma_wait(m):
    counts = range(1, min(REGISTERS[m.march] - 2, 17))
    text = ""
    for n in counts:
        body = " ".join(f"s{i} = MADD(s{i}, x, y);" for i in range(n))
        text += f"static void c{n}(float *z) {{ V x = {{0}}, y = {{0}}; KEEP(x); KEEP(y); " + " ".join(f"V s{i} = {{0}}; KEEP(s{i});" for i in range(n))
        text += f" for (int k = 0; k < 1000; k++) {{ {body} }} " + " ".join(f"*(V *)(z + {i} * LANES) = s{i};" for i in range(n)) + " }\n"
    calls = "".join(f'LEAST(t, c{n}(z)); printf("%d %g\\n", {n}, {n} * 1000 / t);\n' for n in counts)
    rate = {int(n): r for n, r in m.run(text + "int main(void) { double t; float *z = memory(1 << 16);\n" + calls + "}")}
    best = max(rate.values())
    return [("fma_wait", min(n for n in rate if rate[n] > 0.95 * best), " ".join(f"{n}:{rate[n] / best:.2f}" for n in rate))]


def dot_i8x4_tile(rows, panels, name, march):
    """The int8 tile: vpdpbusd, or even and odd bytes as int16 pairs without it."""
    width = {"sse2": "", "avx2": "256", "avx512": "512"}[march]
    kind, p = ("__m128i", "_mm") if march == "sse2" else (f"__m{width}i", f"_mm{width}")
    si = "si128" if march == "sse2" else f"si{width}"
    names = [f"s{i}_{v}" for i in range(rows) for v in range(panels)]
    out = [f"static void {name}(const float *a, const float *w, float *y) {{"] + [f"  {kind} {s} = {p}_setzero_{si}();" for s in names]
    out.append("  for (int k = 0; k < 256; k++) {")
    for v in range(panels):
        at = f"(const {kind} *)(w + (k * {panels} + {v}) * LANES)"
        out.append(f"    {kind} b{v} = {p}_loadu_{si}({at}); KEEP(b{v});")
        if march != "avx512":
            out.append(f"    {kind} c{v} = {p}_srai_epi16(b{v}, 8); b{v} = {p}_srai_epi16({p}_slli_epi16(b{v}, 8), 8);")
    for i in range(rows):
        out.append(f"    {{ {kind} x = {p}_set1_epi32(((const int *)a)[k * {rows} + {i}]);")
        if march != "avx512":
            out.append(f"      {kind} z = {p}_srli_epi16(x, 8); x = {p}_and_{si}(x, {p}_set1_epi16(255));")
        for v in range(panels):
            s = f"s{i}_{v}"
            out.append(f"      {s} = _mm512_dpbusd_epi32({s}, x, b{v});" if march == "avx512" else
                       f"      {s} = {p}_add_epi32({s}, {p}_add_epi32({p}_madd_epi16(x, b{v}), {p}_madd_epi16(z, c{v})));")
        out.append("    }")
    out.append("  }")
    out += [f"  {p}_storeu_{si}(({kind} *)(y + {n} * LANES), {s});" for n, s in enumerate(names)] + ["}"]
    return "\n".join(out)


def dot_i8x4_sums(m):
    most = REGISTERS[m.march]
    shapes = [(r, v) for v in range(1, 5) for r in range(1, 15) if r * v <= most]
    rate = {s: s[0] * s[1] / t for s, t in tile_rates(m, shapes, lambda r, v, n: dot_i8x4_tile(r, v, n, m.march)).items()}
    best = max(rate.values())
    full = [s for s in rate if rate[s] > 0.95 * best]
    wide = {v: max(rate[s] for s in rate if s[1] == v) / best for v in range(1, 5)}
    return [("dot_i8x4_sums", max(r * v for r, v in full), " ".join(f"{r}x{v}:{rate[r, v] / best:.2f}" for r, v in sorted(full, key=lambda s: -rate[s])[:6])),
            ("dot_i8x4_panels", min(v for v in wide if wide[v] > 0.97), " ".join(f"{v}:{x:.2f}" for v, x in wide.items()))]


def dot_i16x2_tile(rows, panels, name, march):
    """The int16 tile: two products per lane."""
    kind, p, si = {"sse2": ("__m128i", "_mm", "si128"), "avx2": ("__m256i", "_mm256", "si256"), "avx512": ("__m512i", "_mm512", "si512")}[march]
    names = [f"s{i}_{v}" for i in range(rows) for v in range(panels)]
    out = [f"static void {name}(const float *a, const float *w, float *y) {{"] + [f"  {kind} {s} = {p}_setzero_{si}();" for s in names]
    out.append("  for (int k = 0; k < 256; k++) {")
    out += [f"    {kind} b{v} = {p}_loadu_{si}((const {kind} *)(w + (k * {panels} + {v}) * LANES)); KEEP(b{v});" for v in range(panels)]
    for i in range(rows):
        out.append(f"    {{ {kind} x = {p}_set1_epi32(((const int *)a)[k * {rows} + {i}]);")
        out += [f"      s{i}_{v} = {p}_add_epi32(s{i}_{v}, {p}_madd_epi16(x, b{v}));" for v in range(panels)] + ["    }"]
    out.append("  }")
    return "\n".join(out + [f"  {p}_storeu_{si}(({kind} *)(y + {n} * LANES), {s});" for n, s in enumerate(names)] + ["}"])


def dot_i16x2_time(m):
    shapes = [(r, v) for v in (1, 2, 3) for r in range(2, 9) if r * v <= REGISTERS[m.march] - 4]
    floats = max(r * v / t for (r, v), t in tile_rates(m, shapes).items())
    rate = {s: 2 * s[0] * s[1] / t for s, t in tile_rates(m, shapes, lambda r, v, n: dot_i16x2_tile(r, v, n, m.march)).items()}
    best = max(rate.values())
    return [("dot_i16x2_time", round(floats / best, 2), " ".join(f"{r}x{v}:{rate[r, v] / best:.2f}" for r, v in sorted(rate, key=lambda s: -rate[s])[:6]))]


def streams(m):
    """A matrix of 16 MiB times a vector, with several panels per tile."""
    counts = (1, 2, 3, 4, 5, 6, 8)
    text = "\n".join(tile(1, v, f"g{v}", steps=1024) for v in counts)
    calls = "".join(f'{{ size_t o = 0, each = 1024 * {v} * LANES; LEAST(t, {{ if ((o + each) * 4 > 16 << 20) o = 0; g{v}(a, w + o, y); o += each; }}); '
                    f'printf("%d %g\\n", {v}, each * 4 / t); }}\n' for v in counts)
    rate = {int(v): r for v, r in m.run(text + "\nint main(void) { double t; float *a = memory(1 << 16), *w = memory(16 << 20), *y = memory(1 << 16);\n" + calls + "}", runs=2000)}
    best = max(rate.values())
    return [("streams", min(v for v in rate if rate[v] > 0.95 * best), "GB/s " + " ".join(f"{v}:{r:.1f}" for v, r in rate.items()))]


def window_kernel(rows, size, stride, name):
    """Depthwise window of size x size with channels in the lanes, over `rows` positions of a line, fully unrolled."""
    out = [f"static void {name}(const float *a, const float *w, float *y) {{", "  for (int b = 0; b < 16; b++) {"] + [f"  V s{i} = {{0}};" for i in range(rows)]
    for r in range(size):
        for c in range(size):
            out.append(f"  {{ V k = *(const V *)(w + {r * size + c} * LANES); " + " ".join(
                f"s{i} = MADD(*(const V *)(a + (({r} * 256) + b * {rows * stride} + {i * stride + c}) * LANES), k, s{i});" for i in range(rows)) + " }")
    return "\n".join(out + [f"  *(V *)(y + (b * {rows} + {i}) * LANES) = s{i};" for i in range(rows)] + ["  }", "}"])


def window(m):
    cases, most = ((3, 1), (5, 1), (3, 2)), 12
    text = "\n".join(window_kernel(r, k, s, f"w{k}{s}_{r}") for k, s in cases for r in range(1, most + 1))
    calls = "".join(f'LEAST(t, w{k}{s}_{r}(a, w, y)); printf("%d %d %d %g\\n", {k}, {s}, {r}, t / {16 * r});\n' for k, s in cases for r in range(1, most + 1))
    time = {(int(k), int(s), int(r)): t for k, s, r, t in m.run(text + "\nint main(void) { double t; float *a = memory(1 << 20), *w = memory(1 << 16), *y = memory(1 << 20);\n" + calls + "}")}
    room, seen = [], []
    for k, s in cases:
        least = min(time[k, s, r] for r in range(1, most + 1))
        rows = min(r for r in range(1, most + 1) if time[k, s, r] < 1.03 * least)
        room.append(rows * (1 + s) - s + 2 * k)
        seen.append(f"{k}x{k} step {s}: {rows} rows")
    return [("window", sorted(room)[1], "; ".join(seen))]


def half_block(m):
    """Throughput of whole vectors divided by that of half vectors, both in their best tile."""
    if m.lanes < 16:
        return [("half_block", 1, "a block is no more than 8 channels")]
    shapes = [(r, v) for v in range(1, 5) for r in range(4, 15) if r * v <= 28]
    speed = [max(r * v / t for (r, v), t in tile_rates(m, shapes, lanes=n).items()) * n for n in (m.lanes, m.lanes // 2)]
    return [("half_block", round(speed[0] / speed[1], 2), f"{speed[0]:.1f} and {speed[1]:.1f} multiply-adds a ns")]


def pack_rows(m):
    """Minimum rows for which packing pays: P + rows * c packed, rows * d unpacked."""
    def ms(rows):
        return m.bench(f"pack{rows}", f'graph (%a "a": f32[{rows},512], %b "b": f32[256,512]) {{\n  %y: f32[{rows},256] = contract(%a, %b) {{spec="mk,nk->mn"}}\n  return %y "y"\n}}\n')
    d, few, many = ms(7) / 7, ms(8), ms(24)
    c = (many - few) / 16
    return [("pack_rows", max(1, round((few - 8 * c) / max(d - c, 1e-9))), f"a row takes {d * 1e3:.1f} us, packed {c * 1e3:.1f} and {1e3 * (few - 8 * c):.1f} at first")]


def widened_tile(lanes, rows, panels, name, keeps, steps=512):
    """A product tile whose second operand is bf16. keeps: it also stores the converted floats."""
    widen = {4: "_mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *){}))", 8: "_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *){})), 16)",
             16: "_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *){})), 16)"}[lanes]
    def load(at):
        step = f"(V){widen.format(f'(h + ({at[1]}) * LANES)')}"
        return f"(*(V *)(f + ({at[1]}) * LANES) = {step})" if keeps else step

    text = tile(rows, panels, name, steps).replace("const float *w,", "const unsigned short *h, float *f,", 1)
    return re.sub(r"\*\(const V \*\)\(w \+ \(([^)]*)\) \* LANES\)", load, text)


def widen_tiles(m):
    """Minimum tiles for which the first one should store the floats that it converts: k + (n - 1) * f vs n * h."""
    rows, panels = {4: (4, 2), 8: (6, 2), 16: (8, 3)}[m.lanes]
    text = "\n".join([tile(rows, panels, "floats", 512), *(widened_tile(m.lanes, rows, panels, name, name == "keeps") for name in ("halves", "keeps"))])
    text += """\nint main(void) { double f, h, k; float *a = memory(1 << 16), *w = memory(1 << 18), *y = memory(1 << 16); unsigned short *s = (void *)memory(1 << 18);
  LEAST(f, floats(a, w, y)); LEAST(h, halves(a, s, w, y)); LEAST(k, keeps(a, s, w, y)); printf("%g %g %g\\n", f, h, k); }"""
    f, h, k = m.run(text, runs=3000)[0]
    least = 0 if h < 1.01 * f else max(2, -int(-(k - f) / (h - f) // 1))
    return [("widen_tiles", least, f"ns a tile: {f:.0f} of floats, {h:.0f} of halves, {k:.0f} where it keeps floats")]


def sparse(m):
    """A convolution as segments vs with a border of zeros: 3x3 over 17x17, dilations 8 and 4."""
    def conv(hole):
        weights = ", ".join(str((i * 37 % 101 - 50) / 100) for i in range(32 * 32 * 9))
        return m.bench(f"holes{hole}", f'graph (%x "x": f32[1,32,17,17]) {{\n  %w: f32[32,32,3,3] = const {{{weights}}}\n  %y: f32[1,32,17,17] = conv(%x, %w) '
                       f'{{group=1, stride=[1,1], dilation=[{hole},{hole}], pad_lo=[{hole},{hole}], pad_hi=[{hole},{hole}]}}\n  return %y "y"\n}}\n')
    met = ((9 + 17 + 9) / 51) ** 2
    apart, border = conv(8) / met, conv(4)
    return [("sparse", round(border / apart, 2), f"{1e3 * border:.1f} us with zeros, {1e3 * apart:.1f} for as many products in segments")]


def memory(m):
    """Read time in ns per byte, by size of the data; other figures follow from it."""
    sizes = [64 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 64 << 20]
    text = """static void go(const float *p, size_t n, float *y) { V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (size_t i = 0; i < n; i += 4 * LANES) { s0 += *(const V *)(p + i); s1 += *(const V *)(p + i + LANES); s2 += *(const V *)(p + i + 2 * LANES); s3 += *(const V *)(p + i + 3 * LANES); }
  *(V *)y = s0 + s1 + s2 + s3; }
int main(void) { double t; float *p = memory(64 << 20), *y = memory(4096);
""" + "".join(f'  LEAST(t, go(p, {n} / 4, y)); printf("%d %g\\n", {n}, t / {n});\n' for n in sizes) + "}"
    time = {int(n): t for n, t in m.run(text, runs=60)}
    far, llc, near = time[64 << 20], time[8 << 20], time[256 << 10]
    tiles = {(6, 2): 12} if m.march != "avx512" else {(8, 3): 24}
    rate = max(r * v / t for (r, v), t in tile_rates(m, list(tiles)).items())
    seen = " ".join(f"{n >> 10}K:{t:.3f}" for n, t in time.items())
    return [("byte_read", round(far * rate, 2), "ns for a byte " + seen), ("byte_again", round(llc / far, 2), ""),
            ("l2_bytes", max([n for n in sizes if time[n] < 1.5 * near]), ""), ("llc_bytes", max([n for n in sizes if time[n] < 0.5 * (far + llc)]), ""),
            ("ns_per_byte_llc", round(llc, 3), ""), ("ns_per_byte_l2", round(max(0, time[512 << 10] - time[64 << 10]), 4), "")]


def threads(m):
    """Cost of sharing between two threads: a cache line that both write, and bytes that one writes and the other reads. Valid only on an idle
    machine; on a busy one the threads take turns."""
    text = """#include <pthread.h>
#include <stdatomic.h>
static _Atomic int turn; static float *block; enum { ROUNDS = 4000, N = 16384 };
static _Alignas(64) volatile int line[32]; static int apart;
static void *write_line(void *arg) { volatile int *p = line + (arg ? apart : 0); for (int i = 0; i < 1000000; i++) (*p)++; return NULL; }
static double race(int far) { apart = far; pthread_t t; double s = now(); pthread_create(&t, NULL, write_line, "");
  write_line(NULL); pthread_join(t, NULL); return (now() - s) / 1e6; }
static double shared;
static void *other(void *arg) { (void)arg; for (int r = 0; r < ROUNDS; r++) { while (atomic_load(&turn) != 2 * r + 1) ; double s = now(); float x = 0;
  for (int i = 0; i < N / 4; i += 16) { x += block[i]; block[i] = x; } s = now() - s; if (s < shared) shared = s; block[0] = x; atomic_store(&turn, 2 * r + 2); } return NULL; }
int main(void) { double one = 0, two = 1e30, alone; block = memory(N);
  for (int i = 0; i < 20; i++) { double a = race(1), b = race(16); if (a > one) one = a; if (b < two) two = b; }
  LEAST(alone, { float x = 0; for (int i = 0; i < N / 4; i += 16) { x += block[i]; block[i] = x; } block[0] = x; });
  shared = 1e30; pthread_t t; pthread_create(&t, NULL, other, NULL);
  for (int r = 0; r < ROUNDS; r++) { for (int i = 0; i < N / 4; i += 16) block[i] = r; atomic_store(&turn, 2 * r + 1); while (atomic_load(&turn) != 2 * r + 2) ; }
  pthread_join(t, NULL); printf("%g %g %g %g\\n", one, two, shared, alone); }"""
    if (os.cpu_count() or 1) < 2:
        return []
    one, two, shared, alone = m.run(text, "-pthread")[0]
    return [("ns_false_sharing", round(max(0, one - two)), f"{one:.1f} ns for a count in one line, {two:.1f} in two"),
            ("ns_per_byte_shared", round((shared - alone) / 16384, 3), f"{shared:.0f} ns for 16 KiB of the other's, {alone:.0f} of one's own")]


def compilers(m):
    """The longest loop with accumulators that -O3 unrolls completely: its assembly has no jump."""
    def steps(n):
        path = os.path.join(m.folder, f"steps{n}")
        with open(path + ".c", "w") as f:
            f.write(f"#define LANES {m.lanes}\n#define RUNS 1\n" + HEAD + "void go(const float *x, const V *w, V *y) { V s = *y, t = y[1];\n"
                    f"for (int i = 0; i < {n}; i++) {{ s += x[i] * w[i]; t += x[i + 64] * w[i]; }} *y = s; y[1] = t; }}\n")
        subprocess.run([m.args.cc, "-O3", *FLAGS[m.march], "-S", path + ".c", "-o", path + ".s"], check=True)
        with open(path + ".s") as f:
            go = f.read().split("\ngo:")[1].split(".size")[0]
        return not re.search(r"\tj[a-z]+\t", go)
    whole = [n for n in range(2, 33) if steps(n)]
    return [("written_out", max(whole or [1]), "steps written out: " + " ".join(map(str, whole)))]


MEASURES = {"sums": sums, "loads": loads, "fma_wait": fma_wait, "byte_widen": byte_widen, "dot_i8x4_sums": dot_i8x4_sums, "dot_i16x2_time": dot_i16x2_time, "streams": streams, "window": window, "half_block": half_block,
            "pack_rows": pack_rows, "widen_tiles": widen_tiles, "sparse": sparse, "memory": memory, "threads": threads, "compilers": compilers}


def table():
    """Values of target.def and compiler.def: by target and name."""
    shared = {}
    for file in (target_table.path(), os.path.join(os.path.dirname(target_table.path()), "compiler.def")):
        with open(file) as f:
            shared.update(re.findall(r"^(?:FIGURE|LIMIT)\((\w+), ([^,]+),", f.read(), re.M))
    costs = target_table.costs()
    return {name: {**shared, **{cost: f"{value:g}" for cost, (value, _) in costs[row["costs"]].items()}} for name, row in ROWS.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("figure", nargs="*", choices=[[], *MEASURES])
    p.add_argument("--march", choices=list(FLAGS))
    p.add_argument("--cc", default="gcc")
    p.add_argument("--ingot", default=os.path.join(ROOT, "build", "ingot"))
    args = p.parse_args()
    with open("/proc/cpuinfo") as f:
        cpu = f.read()
    print("# " + ", ".join(re.findall(r"^((?:model name|cpu family|model)\s*: .*)", cpu, re.M)[:3]).replace("\t", ""))
    rows = table()
    for march in [args.march] if args.march else [t for t in FLAGS if re.search(rf"\b{NEEDS[t]}\b", cpu)]:
        with tempfile.TemporaryDirectory() as folder:
            m = Machine(march, args, folder)
            for figure in args.figure or MEASURES:
                for name, value, seen in MEASURES[figure](m):
                    print(f"{march:7} {name:18} {value:<8g} table {rows[march][name]:10} {seen}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

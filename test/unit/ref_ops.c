/* Reference evaluator, op by op: each case is a graph without inputs that returns what it computed
 * and, as constants, what that should be, in pairs. Both must be equal to the bit, in ordinary and
 * in wide mode unless rounding is what the case shows. */
#include "ir/graph/graph.h"

#include <stdio.h>
#include <string.h>

typedef struct Case {
  const char *name, *text;
} Case;

static const Case cases[] = {
    {"map broadcasts from the right",
     "graph () { %a: f32[2,1] = const {1, 2}  %b: f32[3] = const {10, 20, 30}\n"
     "%c: f32[2,3] = add(%a, %b)  %w: f32[2,3] = const {11, 21, 31, 12, 22, 32}\n"
     "return %c, %w }"},
    {"map of rank 0",
     "graph () { %a: i8[] = const {100}  %b: i8[] = const {100}  %c: i8[] = add(%a, %b)\n"
     "%w: i8[] = const {-56}  return %c, %w }"},
    {"map over nothing", "graph () { %a: f32[0,3] = const {}  %b: f32[3] = const {1, 2, 3}\n"
                         "%c: f32[0,3] = mul(%a, %b)  %w: f32[0,3] = const {}  return %c, %w }"},
    {"typed loops: sub max min, i64 wraps",
     "graph () { %a: f32[3] = const {1, nan, 3}  %b: f32[3] = const {2, 2, nan}\n"
     "%x: f32[3] = max(%a, %b)  %y: f32[3] = min(%a, %b)\n"
     "%wx: f32[3] = const {2, nan, nan}  %wy: f32[3] = const {1, nan, nan}\n"
     "%i: i64[1] = const {9223372036854775807}  %j: i64[] = const {2}\n"
     "%p: i64[1] = mul(%i, %j)  %q: i64[1] = sub(%p, %i)\n"
     "%wp: i64[1] = const {-2}  %wq: i64[1] = const {9223372036854775807}\n"
     "return %x, %wx, %y, %wy, %p, %wp, %q, %wq }"},
    {"select, comparison, cast",
     "graph () { %a: i32[4] = const {-1, 0, 1, 300}  %b: i32[] = const {0}\n"
     "%p: bool[4] = gt(%a, %b)  %s: i32[4] = select(%p, %a, %b)  %c: u8[4] = cast(%s) {to = u8}\n"
     "%d: u8[4] = cast(%a) {to = u8, sat = 1}\n"
     "%wc: u8[4] = const {0, 0, 1, 44}  %wd: u8[4] = const {0, 0, 1, 255}\n"
     "return %c, %wc, %d, %wd }"},
    {"bitcast",
     "graph () { %a: f32[2] = const {1, -2.5}  %b: u32[2] = bitcast(%a) {to = u32}\n"
     "%wb: u32[2] = const {1065353216, 3223322624}  %c: f32[2] = bitcast(%b) {to = f32}\n"
     "return %b, %wb, %c, %a }"},
    {"rounding: f16 arithmetic, each operation",
     "graph () { %a: f16[1] = const {2048}  %b: f16[1] = const {1}\n"
     "%c: f16[1] = add(%a, %b)  %d: f16[1] = add(%c, %b)  return %d, %a }"},
    {"equality and choice of strings",
     "graph () { %a: str[3] = const {\"x\", \"yy\", \"\"}  %b: str[] = const {\"yy\"}\n"
     "%p: bool[3] = eq(%a, %b)  %wp: bool[3] = const {false, true, false}\n"
     "%s: str[3] = select(%p, %b, %a)  return %p, %wp, %s, %a }"},
    {"iota", "graph () { %a: i32[2,3] = iota {shape = [2,3], axis = 1, to = i32}\n"
             "%b: f32[2,2] = iota {shape = [2,2], axis = 0, to = f32}\n"
             "%wa: i32[2,3] = const {0, 1, 2, 0, 1, 2}  %wb: f32[2,2] = const {0, 0, 1, 1}\n"
             "return %a, %wa, %b, %wb }"},
    {"reductions",
     "graph () { %x: f32[2,3] = const {1, 2, 3, 4, 5, 6}\n"
     "%a: f32[2] = reduce_sum(%x) {axes = [1], keep = 0}  %wa: f32[2] = const {6, 15}\n"
     "%b: f32[1,3] = reduce_prod(%x) {axes = [0], keep = 1}  %wb: f32[1,3] = const {4, 10, 18}\n"
     "%c: f32[] = reduce_max(%x) {axes = [0,1], keep = 0}  %wc: f32[] = const {6}\n"
     "%d: f32[2,1] = reduce_min(%x) {axes = [1], keep = 1}  %wd: f32[2,1] = const {1, 4}\n"
     "return %a, %wa, %b, %wb, %c, %wc, %d, %wd }"},
    {"reductions of three axes, the outer and inner one",
     "graph () { %x: i32[2,2,2] = const {1, 2, 3, 4, 5, 6, 7, 8}\n"
     "%a: i32[2] = reduce_sum(%x) {axes = [0,2], keep = 0}  %w: i32[2] = const {14, 22}\n"
     "return %a, %w }"},
    {"empty reductions",
     "graph () { %x: i8[2,0] = const {}  %f: f32[0] = const {}  %b: bool[0] = const {}\n"
     "%u: u64[0] = const {}\n"
     "%a: i8[2] = reduce_max(%x) {axes = [1], keep = 0}  %wa: i8[2] = const {-128, -128}\n"
     "%c: i8[2] = reduce_min(%x) {axes = [1], keep = 0}  %wc: i8[2] = const {127, 127}\n"
     "%d: f32[] = reduce_min(%f) {axes = [0], keep = 0}  %wd: f32[] = const {inf}\n"
     "%e: bool[] = reduce_max(%b) {axes = [0], keep = 0}  %we: bool[] = const {false}\n"
     "%g: bool[] = reduce_min(%b) {axes = [0], keep = 0}  %wg: bool[] = const {true}\n"
     "%h: u64[] = reduce_max(%u) {axes = [0], keep = 0}  %wh: u64[] = const {0}\n"
     "%i: f32[] = reduce_prod(%f) {axes = [0], keep = 0}  %wi: f32[] = const {1}\n"
     "return %a, %wa, %c, %wc, %d, %wd, %e, %we, %g, %wg, %h, %wh, %i, %wi }"},
    {"extremes of u64 compare without sign",
     "graph () { %x: u64[3] = const {1, 18446744073709551615, 7}\n"
     "%a: u64[] = reduce_max(%x) {axes = [0], keep = 0}  %wa: u64[] = const "
     "{18446744073709551615}\n"
     "%b: u64[] = reduce_min(%x) {axes = [0], keep = 0}  %wb: u64[] = const {1}\n"
     "%c: i64[] = argmax(%x) {axis = 0, keep = 0, last = 0}  %wc: i64[] = const {1}\n"
     "%d: u64[] = reduce_sum(%x) {axes = [0], keep = 0}  %wd: u64[] = const {7}\n"
     "return %a, %wa, %b, %wb, %c, %wc, %d, %wd }"},
    {"rounding: f16 sums accumulate in f32",
     "graph () { %a: f16[] = const {1}  %b: f16[4097] = broadcast(%a) {shape = [4097]}\n"
     "%s: f16[] = reduce_sum(%b) {axes = [0], keep = 0}  %w: f16[] = const {4096}\n"
     "return %s, %w }"},
    {"argmax and argmin",
     "graph () { %x: f32[2,4] = const {1, 7, 7, 0, 5, nan, 9, nan}\n"
     "%a: i64[2] = argmax(%x) {axis = 1, keep = 0, last = 0}  %wa: i64[2] = const {1, 1}\n"
     "%b: i64[2,1] = argmax(%x) {axis = 1, keep = 1, last = 1}  %wb: i64[2,1] = const {2, 1}\n"
     "%c: i64[2] = argmin(%x) {axis = 1, keep = 0, last = 0}  %wc: i64[2] = const {3, 1}\n"
     "%d: i64[4] = argmin(%x) {axis = 0, keep = 0, last = 0}  %wd: i64[4] = const {0, 1, 0, 1}\n"
     "return %a, %wa, %b, %wb, %c, %wc, %d, %wd }"},
    {"contractions",
     "graph () { %a: f32[2,3] = const {1, 2, 3, 4, 5, 6}  %b: f32[3,2] = const {1, 2, 3, 4, 5, 6}\n"
     "%c: f32[2,2] = contract(%a, %b) {spec = \"mk,kn->mn\"}  %wc: f32[2,2] = const {22, 28, 49, "
     "64}\n"
     "%d: f32[2,2] = contract(%a, %a) {spec = \"mk,nk->mn\"}  %wd: f32[2,2] = const {14, 32, 32, "
     "77}\n"
     "%e: f32[3,3] = contract(%a, %b) {spec = \"km,nk->nm\"}\n"
     "%we: f32[3,3] = const {9, 12, 15, 19, 26, 33, 29, 40, 51}\n"
     "%f: f32[] = contract(%a, %b) {spec = \"ab,cd->\"}  %wf: f32[] = const {441}\n"
     "%g: f32[2,3] = contract(%a, %a) {spec = \"ab,ab->ab\"}\n"
     "%wg: f32[2,3] = const {1, 4, 9, 16, 25, 36}\n"
     "return %c, %wc, %d, %wd, %e, %we, %f, %wf, %g, %wg }"},
    {"contraction over nothing, integers wrap at the end",
     "graph () { %a: f32[2,0] = const {}  %b: f32[0,1] = const {}\n"
     "%c: f32[2,1] = contract(%a, %b) {spec = \"mk,kn->mn\"}  %wc: f32[2,1] = const {0, 0}\n"
     "%i: i8[2] = const {100, 100}  %d: i8[] = contract(%i, %i) {spec = \"a,a->\"}\n"
     "%wd: i8[] = const {32}  return %c, %wc, %d, %wd }"},
    {"convolution: pads, stride, dilation",
     "graph () { %x: f32[1,1,3,3] = const {1, 2, 3, 4, 5, 6, 7, 8, 9}\n"
     "%w: f32[1,1,2,2] = const {1, 10, 100, 1000}\n"
     "%a: f32[1,1,2,2] = conv(%x, %w) {group = 1, stride = [1,1], dilation = [1,1],\n"
     "  pad_lo = [0,0], pad_hi = [0,0]}  %wa: f32[1,1,2,2] = const {5421, 6532, 8754, 9865}\n"
     "%b: f32[1,1,2,2] = conv(%x, %w) {group = 1, stride = [2,2], dilation = [1,1],\n"
     "  pad_lo = [1,1], pad_hi = [0,0]}  %wb: f32[1,1,2,2] = const {1000, 3200, 7040, 9865}\n"
     "%c: f32[1,1,1,1] = conv(%x, %w) {group = 1, stride = [1,1], dilation = [2,2],\n"
     "  pad_lo = [0,0], pad_hi = [0,0]}  %wc: f32[1,1,1,1] = const {9731}\n"
     "return %a, %wa, %b, %wb, %c, %wc }"},
    {"convolution: groups, pointwise, no spatial axes, batch",
     "graph () { %x: i32[2,2,2] = const {1, 2, 3, 4, 5, 6, 7, 8}\n"
     "%w: i32[2,1,1] = const {1, 10}\n"
     "%a: i32[2,2,2] = conv(%x, %w) {group = 2, stride = [1], dilation = [1], pad_lo = [0], pad_hi "
     "= [0]}\n"
     "%wa: i32[2,2,2] = const {1, 2, 30, 40, 5, 6, 70, 80}\n"
     "%v: i32[1,2,1] = const {1, 10}\n"
     "%b: i32[2,1,2] = conv(%x, %v) {group = 1, stride = [1], dilation = [1], pad_lo = [0], pad_hi "
     "= [0]}\n"
     "%wb: i32[2,1,2] = const {31, 42, 75, 86}\n"
     "%y: i32[1,2] = const {3, 4}  %u: i32[3,2] = const {1, 0, 0, 1, 1, 1}\n"
     "%c: i32[1,3] = conv(%y, %u) {group = 1, stride = [], dilation = [], pad_lo = [], pad_hi = "
     "[]}\n"
     "%wc: i32[1,3] = const {3, 4, 7}  return %a, %wa, %b, %wb, %c, %wc }"},
    {"pools",
     "graph () { %x: f32[1,3,3] = const {1, 2, 3, 6, 5, 4, 7, nan, 9}\n"
     "%a: f32[1,2,2] = pool_max(%x) {window = [2,2], stride = [1,1], dilation = [1,1],\n"
     "  pad_lo = [0,0], pad_hi = [0,0]}  %wa: f32[1,2,2] = const {6, 5, nan, nan}\n"
     "%b: i64[1,2,2] = pool_argmax(%x) {window = [2,2], stride = [1,1], dilation = [1,1],\n"
     "  pad_lo = [0,0], pad_hi = [0,0]}  %wb: i64[1,2,2] = const {3, 4, 7, 7}\n"
     "%y: f32[4] = const {-1, -2, -3, -4}\n"
     "%c: f32[3] = pool_sum(%y) {window = [3], stride = [2], dilation = [1], pad_lo = [1], pad_hi "
     "= [2]}\n"
     "%wc: f32[3] = const {-3, -9, -4}\n"
     "%d: f32[3] = pool_max(%y) {window = [3], stride = [2], dilation = [1], pad_lo = [1], pad_hi "
     "= [2]}\n"
     "%wd: f32[3] = const {-1, -2, -4}\n"
     "%e: f32[4] = pool_sum(%y) {window = [2], stride = [1], dilation = [3], pad_lo = [1], pad_hi "
     "= [2]}\n"
     "%we: f32[4] = const {-3, -5, -2, -3}\n"
     "return %a, %wa, %b, %wb, %c, %wc, %d, %wd, %e, %we }"},
    {"a window far larger than its operand",
     "graph () { %y: i32[2] = const {3, 4}\n"
     "%a: i32[2] = pool_sum(%y) {window = [2000000000], stride = [1], dilation = [1],\n"
     "  pad_lo = [1999999998], pad_hi = [1]}  %wa: i32[2] = const {7, 7}  return %a, %wa }"},
    {"a window that sees mostly padding between two strides",
     "graph () { %y: i32[1] = const {3}\n"
     "%a: i32[2] = pool_sum(%y) {window = [2147483647], stride = [2147483647], dilation = [1],\n"
     "  pad_lo = [2147483647], pad_hi = [2147483646]}  %wa: i32[2] = const {0, 3}  return %a, %wa "
     "}"},
    {"views",
     "graph () { %x: i32[2,3] = const {1, 2, 3, 4, 5, 6}\n"
     "%a: i32[3,2] = reshape(%x) {shape = [3,2]}  %wa: i32[3,2] = const {1, 2, 3, 4, 5, 6}\n"
     "%b: i32[3,2] = transpose(%x) {perm = [1,0]}  %wb: i32[3,2] = const {1, 4, 2, 5, 3, 6}\n"
     "%c: i32[2,2] = slice(%x) {start = [1,2], step = [-1,-2], size = [2,2]}\n"
     "%wc: i32[2,2] = const {6, 4, 3, 1}\n"
     "%d: i32[2,2,3] = broadcast(%x) {shape = [2,2,3]}\n"
     "%wd: i32[2,2,3] = const {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}\n"
     "%s: i32[2,0] = slice(%x) {start = [0,3], step = [1,1], size = [2,0]}\n"
     "%ws: i32[2,0] = const {}\n"
     "%one: i32[2,1] = slice(%x) {start = [0,1], step = [1,1], size = [2,1]}\n"
     "%e: i32[2,3] = broadcast(%one) {shape = [2,3]}  %we: i32[2,3] = const {2, 2, 2, 5, 5, 5}\n"
     "return %a, %wa, %b, %wb, %c, %wc, %d, %wd, %s, %ws, %e, %we }"},
    {"transpose of three axes; strings and complex numbers move too",
     "graph () { %x: str[1,2,2] = const {\"a\", \"b\", \"c\", \"d\"}\n"
     "%a: str[2,1,2] = transpose(%x) {perm = [2,0,1]}\n"
     "%wa: str[2,1,2] = const {\"a\", \"c\", \"b\", \"d\"}\n"
     "%y: c128[2] = const {(1, 2), (3, 4)}  %b: c128[2] = slice(%y) {start = [1], step = [-1], "
     "size = [2]}\n"
     "%wb: c128[2] = const {(3, 4), (1, 2)}  return %a, %wa, %b, %wb }"},
    {"joins",
     "graph () { %x: i16[2,1] = const {1, 2}  %y: i16[2,2] = const {3, 4, 5, 6}  %z: i16[] = const "
     "{9}\n"
     "%e: i16[2,0] = const {}\n"
     "%a: i16[2,3] = concat(%x, %e, %y) {axis = 1}  %wa: i16[2,3] = const {1, 3, 4, 2, 5, 6}\n"
     "%b: i16[3,4] = pad(%y, %z) {lo = [0,1], hi = [0,0], interior = [1,1]}\n"
     "%wb: i16[3,4] = const {9, 3, 9, 4, 9, 9, 9, 9, 9, 5, 9, 6}\n"
     "%c: i16[2,1] = pad(%e, %z) {lo = [0,0], hi = [0,1], interior = [0,0]}\n"
     "%wc: i16[2,1] = const {9, 9}  return %a, %wa, %b, %wb, %c, %wc }"},
    {"gathers wrap negative indices and clamp the rest",
     "graph () { %x: f32[3,2] = const {1, 2, 3, 4, 5, 6}  %i: i64[2,2] = const {0, -1, 7, -9}\n"
     "%a: f32[2,2,2] = gather(%x, %i) {axis = 0}  %wa: f32[2,2,2] = const {1, 2, 5, 6, 5, 6, 1, "
     "2}\n"
     "%j: i32[] = const {1}  %b: f32[3] = gather(%x, %j) {axis = 1}  %wb: f32[3] = const {2, 4, "
     "6}\n"
     "%k: i64[1,2] = const {2, -2}  %c: f32[1,2] = gather_elems(%x, %k) {axis = 0}\n"
     "%wc: f32[1,2] = const {5, 4}  %l: i64[2,2] = const {0, 1, -1, 0}\n"
     "%d: f32[2] = gather_nd(%x, %l) {batch = 0}  %wd: f32[2] = const {2, 5}\n"
     "%m: i64[3,1] = const {1, 0, 1}  %e: f32[3] = gather_nd(%x, %m) {batch = 1}\n"
     "%we: f32[3] = const {2, 3, 6}  %n: i64[2,1] = const {2, 0}\n"
     "%f: f32[2,2] = gather_nd(%x, %n) {batch = 0}  %wf: f32[2,2] = const {5, 6, 1, 2}\n"
     "return %a, %wa, %b, %wb, %c, %wc, %d, %wd, %e, %we, %f, %wf }"},
    {"gather of strings",
     "graph () { %x: str[2] = const {\"a\", \"b\"}  %i: i64[3] = const {1, 0, 1}\n"
     "%a: str[3] = gather(%x, %i) {axis = 0}  %wa: str[3] = const {\"b\", \"a\", \"b\"}  return "
     "%a, %wa }"},
    {"scatters apply updates in order and skip what is outside",
     "graph () { %x: f32[2,3] = const {1, 2, 3, 4, 5, 6}  %i: i64[2,2] = const {0, -1, 5, 0}\n"
     "%u: f32[2,2] = const {10, 20, 30, 40}\n"
     "%a: f32[2,3] = scatter_elems(%x, %i, %u) {axis = 1, reduce = \"none\"}\n"
     "%wa: f32[2,3] = const {10, 2, 20, 40, 5, 6}\n"
     "%j: i64[3,1] = const {1, 1, 2}  %v: f32[3,3] = const {1, 2, 3, 1, 1, 1, 9, 9, 9}\n"
     "%b: f32[2,3] = scatter_nd(%x, %j, %v) {reduce = \"add\"}\n"
     "%wb: f32[2,3] = const {1, 2, 3, 6, 8, 10}\n"
     "%k: i64[1,2] = const {0, 1}  %t: f32[1] = const {7}\n"
     "%c: f32[2,3] = scatter_nd(%x, %k, %t) {reduce = \"mul\"}\n"
     "%wc: f32[2,3] = const {1, 14, 3, 4, 5, 6}\n"
     "%d: f32[2,3] = scatter_nd(%x, %k, %t) {reduce = \"max\"}\n"
     "%wd: f32[2,3] = const {1, 7, 3, 4, 5, 6}\n"
     "%e: f32[2,3] = scatter_elems(%x, %i, %u) {axis = 0, reduce = \"min\"}\n"
     "%we: f32[2,3] = const {1, 2, 3, 4, 5, 6}\n"
     "return %a, %wa, %b, %wb, %c, %wc, %d, %wd, %e, %we }"},
    {"running sums", "graph () { %x: i32[2,3] = const {1, 2, 3, 4, 5, 6}\n"
                     "%a: i32[2,3] = cumsum(%x) {axis = 1, exclusive = 0, reverse = 0}\n"
                     "%wa: i32[2,3] = const {1, 3, 6, 4, 9, 15}\n"
                     "%b: i32[2,3] = cumsum(%x) {axis = 1, exclusive = 1, reverse = 1}\n"
                     "%wb: i32[2,3] = const {5, 3, 0, 11, 6, 0}\n"
                     "%c: i32[2,3] = cumprod(%x) {axis = 0, exclusive = 0, reverse = 1}\n"
                     "%wc: i32[2,3] = const {4, 10, 18, 4, 5, 6}\n"
                     "%d: i32[2,3] = cumsum(%x) {axis = 0, exclusive = 1, reverse = 0}\n"
                     "%wd: i32[2,3] = const {0, 0, 0, 1, 2, 3}\n"
                     "return %a, %wa, %b, %wb, %c, %wc, %d, %wd }"},
    {"topk", "graph () { %x: f32[5] = const {3, nan, 3, 1, -0.0}\n"
             "%a: f32[4], %b: i64[4] = topk(%x) {axis = 0, k = [4], largest = 1}\n"
             "%wa: f32[4] = const {nan, 3, 3, 1}  %wb: i64[4] = const {1, 0, 2, 3}\n"
             "%c: f32[5], %d: i64[5] = topk(%x) {axis = 0, k = [5], largest = 0}\n"
             "%wc: f32[5] = const {-0.0, 1, 3, 3, nan}  %wd: i64[5] = const {4, 3, 0, 2, 1}\n"
             "%y: i8[2,2] = const {1, 2, 3, -4}  %e: i8[1,2], %f: i64[1,2] = topk(%y) {axis = 0, k "
             "= [1], largest = 1}\n"
             "%we: i8[1,2] = const {3, 2}  %wf: i64[1,2] = const {1, 0}\n"
             "return %a, %wa, %b, %wb, %c, %wc, %d, %wd, %e, %we, %f, %wf }"},
    {"loop: carried values swap, scans stack",
     "graph () { %n: i64[] = const {4}  %t: bool[] = const {true}\n"
     "%a: i64[] = const {0}  %b: i64[] = const {1}\n"
     "%x: i64[], %y: i64[], %s: i64[4] = loop(%n, %t, %a, %b) {scans = 1}\n"
     "(%i: i64[], %c: bool[], %p: i64[], %q: i64[]) { %r: i64[] = add(%p, %q)  return %c, %q, %r, "
     "%i }\n"
     "%wx: i64[] = const {3}  %wy: i64[] = const {5}  %ws: i64[4] = const {0, 1, 2, 3}\n"
     "return %x, %wx, %y, %wy, %s, %ws }"},
};

static Err status;
static const Case *now;

static void run_case(Ctx *c, void *wide) {
  Graph *g = graph_parse(c, now->text, strlen(now->text), str_of(c, now->name), NULL, 0);
  u32 n = g->region.at[1].ret.n;
  Tensor **out = NEWS(&c->work, Tensor *, n);
  RefOptions o = {.wide = wide != NULL};
  ref_run(g, &o, NULL, out, &c->keep);
  for (u32 i = 0; i < n; i += 2) {
    if (tensor_equal(c, out[i], out[i + 1])) continue;
    fprintf(stderr, "%s%s: result %u differs:", now->name, wide ? " (wide)" : "", i / 2);
    for (u64 k = 0; k < out[i]->n && k < 16; k++) {
      Scalar x = tensor_get(out[i], k);
      if (dtype_is_float(out[i]->dt))
        fprintf(stderr, " %g", x.f);
      else
        fprintf(stderr, " %lld", (long long)x.i);
    }
    fprintf(stderr, "\n");
    status = ERR_mismatch;
  }
}

int main(void) {
  for (u32 i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
    now = &cases[i / 2];
    if (i % 2 && strstr(now->name, "rounding")) continue;
    Ctx *c = ctx_new(NULL, NULL);
    Err e = ctx_protect(c, run_case, i % 2 ? &status : NULL);
    if (e) {
      fprintf(stderr, "%s: code %d\n", now->name, e);
      for (const Diag *d = c->diags; d; d = d->next) fprintf(stderr, "  %s\n", d->text);
      status = e;
    }
    ctx_free(c);
  }
  return status != ERR_ok;
}

"""Small graphs whose gradients are compared with central differences: at least one for every operator of ops.def.

    cases() -> {name: text}; the name begins with the operator

A case has parameters ("x:2,3@0.1..0.9 i/i64:4@0..2", default: f64 in -1..1) and lines. The last line defines the result; of several
results, the first counts.
"""
import re

FLOAT_TWO = "a:2,3@0.3..0.9 b:3@0.2..1.7"
DOMAIN = {"acosh": "1.2..3", "asin": "-0.8..0.8", "acos": "-0.8..0.8", "atanh": "-0.8..0.8", "log": "0.2..3", "sqrt": "0.2..3",
          "recip": "0.3..2", "exp_nonpos": "-2..-0.1", "floor": "1.1..1.9", "ceil": "1.1..1.9", "round": "1.1..1.4", "trunc": "1.1..1.9",
          "sign": "0.1..0.9", "tan": "-1.2..1.2"}
# three blocks of Q4_0: a scale of 0.5 in f16, then nibbles
BLOCKS = ", ".join(str((0, 56)[i % 18] if i % 18 < 2 else i * 37 % 251) for i in range(54))

# name: (parameters, lines)
CASES = {
    "add_scalar": ("a:2,3 b:", "%y: f64[2,3] = add(%a, %b)"),
    "sub_both": ("a:2,1 b:3", "%y: f64[2,3] = sub(%a, %b)"),
    "mul_same": ("a:2,3", "%y: f64[2,3] = mul(%a, %a)"),
    "div_broadcast": ("a:3 b:2,1@0.5..2", "%y: f64[2,3] = div(%a, %b)"),
    "pow_zero": ("a:4@0.5..2", "%k: f64[4] = const {0, 1, 2, -1.5}\n%y: f64[4] = pow(%a, %k)"),
    "mod_negative": ("a:5@-3.9..-3.1", "%k: f64[] = const {1.3}\n%y: f64[5] = mod(%a, %k)"),
    "max_clip": ("a:6@-2..2", "%l: f64[] = const {-0.5}\n%h: f64[] = const {0.7}\n%m: f64[6] = max(%a, %l)\n%y: f64[6] = min(%m, %h)"),
    "select_condition": ("a:2,3 b:2,3 c/bool:2,3@0..1", "%y: f64[2,3] = select(%c, %a, %b)"),
    "select_broadcast": ("a:3 b: c/bool:2,1@0..1", "%y: f64[2,3] = select(%c, %a, %b)"),
    "cast_narrow": ("a:4", "%n: f32[4] = cast(%a) {to = f32}\n%y: f64[4] = cast(%n) {to = f64}"),
    "cast_integer": ("a:4@1.1..1.9", "%n: i32[4] = cast(%a) {to = i32}\n%m: f64[4] = cast(%n) {to = f64}\n%y: f64[4] = mul(%a, %m)"),
    "bitcast_integer": ("a:3", "%i: i64[3] = bitcast(%a) {to = i64}\n%k: i64[] = const {52}\n%e: i64[3] = shr(%i, %k)\n%z: i64[] = const {0}\n"
                               "%p: bool[3] = lt(%e, %z)\n%y: f64[3] = select(%p, %a, %a)"),
    "isnan_mask": ("a:3", "%p: bool[3] = isnan(%a)\n%q: bool[3] = isinf(%a)\n%r: bool[3] = or(%p, %q)\n%z: f64[] = const {0}\n%y: f64[3] = select(%r, %z, %a)"),
    "and_bits": ("a:3 b:3", "%p: bool[3] = lt(%a, %b)\n%q: bool[3] = ge(%a, %b)\n%r: bool[3] = xor(%p, %q)\n%s: bool[3] = not(%p)\n%t: bool[3] = and(%r, %s)\n"
                            "%u: bool[3] = le(%a, %b)\n%v: bool[3] = ne(%a, %b)\n%w: bool[3] = and(%u, %v)\n%x: bool[3] = or(%t, %w)\n"
                            "%n: bool[3] = eq(%a, %b)\n%o: bool[3] = gt(%a, %b)\n%m: bool[3] = or(%n, %o)\n%k: bool[3] = xor(%m, %x)\n%y: f64[3] = select(%k, %a, %b)"),
    "shl_index": ("a:8 i/i64:3@0..2", "%k: i64[] = const {1}\n%j: i64[3] = shl(%i, %k)\n%y: f64[3] = gather(%a, %j) {axis = 0}"),
    "dot_i8x4_index": ("a:8 i/i32:3@0..1", "%z: i32[] = const {0}\n%j: i32[3] = dot_i8x4(%i, %i, %z)\n%k: i32[3] = dot_i16x2(%i, %i, %j)\n%l: i32[3] = maddubs(%i, %i, %k)\n"
                                       "%m: i32[] = const {7}\n%p: i32[3] = requant(%l, %m, %m)\n%q: i32[3] = add(%l, %p)\n%o: i32[3] = psign(%q, %m)\n%b: i32[3] = widen_i8x2(%o, %i)\n%n: i32[3] = and(%b, %m)\n%y: f64[3] = gather(%a, %n) {axis = 0}"),
    "const_factor": ("a:3", "%k: f64[3] = const {1, -2, 0.5}\n%y: f64[3] = mul(%a, %k)"),
    "dims_factor": ("a:3", "%k: i64[1] = dims {shape = [7], to = i64, rank = 1}\n%f: f64[1] = cast(%k) {to = f64}\n%y: f64[3] = mul(%a, %f)"),
    "iota_factor": ("a:3", "%k: f64[3] = iota {shape = [3], axis = 0, to = f64}\n%y: f64[3] = mul(%a, %k)"),
    "random_mask": ("a:6", "%k: f64[6] = random {shape = [6], seed = 3, to = f64}\n%h: f64[] = const {0.5}\n%c: bool[6] = lt(%k, %h)\n"
                           "%z: f64[] = const {0}\n%y: f64[6] = select(%c, %a, %z)"),
    # reductions
    "reduce_sum": ("x:2,3,4", "%y: f64[2,4] = reduce_sum(%x) {axes = [1], keep = 0}"),
    "reduce_sum_all": ("x:2,3", "%y: f64[1,1] = reduce_sum(%x) {axes = [0,1], keep = 1}"),
    "reduce_sum_none": ("x:2,3", "%y: f64[2,3] = reduce_sum(%x) {axes = [], keep = 0}"),
    "reduce_prod": ("x:2,3,2", "%y: f64[3] = reduce_prod(%x) {axes = [0,2], keep = 0}"),
    "reduce_prod_zero": ("a:2,3 b:2,1@0..0", "%z: f64[2,4] = concat(%a, %b) {axis = 1}\n%y: f64[2,1] = reduce_prod(%z) {axes = [1], keep = 1}"),
    "reduce_max": ("x:3,5", "%y: f64[3] = reduce_max(%x) {axes = [1], keep = 0}"),
    "reduce_min": ("x:3,5", "%y: f64[1,5] = reduce_min(%x) {axes = [0], keep = 1}"),
    "resume_sum": ("x:3,5 s:5", "%y: f64[5] = resume_sum(%x, %s) {axes = [0], keep = 0}"),
    "argmax": ("x:3,5", "%i: i64[3,1] = argmax(%x) {axis = 1, keep = 1, last = 0}\n%y: f64[3,1] = gather_elems(%x, %i) {axis = 1}"),
    "argmin": ("x:3,5", "%i: i64[1,5] = argmin(%x) {axis = 0, keep = 1, last = 1}\n%y: f64[1,5] = gather_elems(%x, %i) {axis = 0}"),
    # contractions
    "contract": ("a:3,4 b:4,2", '%y: f64[3,2] = contract(%a, %b) {spec = "mk,kn->mn"}'),
    "contract_batch": ("a:2,3,4 b:2,5,4", '%y: f64[2,5,3] = contract(%a, %b) {spec = "bmk,bnk->bnm"}'),
    "contract_alone": ("a:2,3,4 b:4,2", '%y: f64[3] = contract(%a, %b) {spec = "amk,kn->m"}'),
    "contract_outer": ("a:3 b:2", '%y: f64[3,2] = contract(%a, %b) {spec = "m,n->mn"}'),
    "contract_dot": ("a:5 b:5", '%y: f64[] = contract(%a, %b) {spec = "k,k->"}'),
    "conv": ("x:2,3,5,5 w:4,3,3,3", "%y: f64[2,4,5,5] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}"),
    "conv_one": ("x:2,3,4,4 w:2,3,1,1", "%y: f64[2,2,4,4] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}"),
    "conv_one_stride": ("x:2,4,5,4 w:2,2,1,1", "%y: f64[2,2,3,2] = conv(%x, %w) {group=2, stride=[2,2], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}"),
    "conv_stride": ("x:1,2,7,6 w:3,2,3,2", "%y: f64[1,3,4,3] = conv(%x, %w) {group=1, stride=[2,2], dilation=[1,1], pad_lo=[1,0], pad_hi=[1,1]}"),
    "conv_far_stride": ("x:1,2,7 w:2,2,2", "%y: f64[1,2,2] = conv(%x, %w) {group=1, stride=[3], dilation=[1], pad_lo=[0], pad_hi=[0]}"),
    "conv_stride_pads": ("x:1,1,5 w:1,1,2", "%y: f64[1,1,7] = conv(%x, %w) {group=1, stride=[2], dilation=[1], pad_lo=[5], pad_hi=[4]}"),
    "conv_unreached": ("x:1,1,2 w:1,1,2", "%y: f64[1,1,1] = conv(%x, %w) {group=1, stride=[2], dilation=[1], pad_lo=[1], pad_hi=[0]}"),
    "conv_outside": ("x:1,1,1 w:1,1,1", "%c: f64[1,1,2] = conv(%x, %w) {group=1, stride=[2], dilation=[1], pad_lo=[1], pad_hi=[1]}\n%m: f64[1,1,1] = mul(%x, %w)\n%y: f64[1,1,2] = add(%c, %m)"),
    "conv_many": ("x:2,9,4,4 w:9,9,3,3", "%y: f64[2,9,4,4] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}"),
    "conv_narrow": ("x:1,10,4,4 w:3,10,3,3", "%y: f64[1,3,2,2] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}"),
    "conv_group": ("x:2,4,5 w:6,2,3", "%y: f64[2,6,3] = conv(%x, %w) {group=2, stride=[2], dilation=[1], pad_lo=[1], pad_hi=[1]}"),
    "conv_depthwise": ("x:2,3,4,4 w:3,1,3,3", "%y: f64[2,3,2,2] = conv(%x, %w) {group=3, stride=[2,2], dilation=[1,1], pad_lo=[0,1], pad_hi=[1,0]}"),
    "conv_dilated": ("x:1,2,9 w:2,2,3", "%y: f64[1,2,3] = conv(%x, %w) {group=1, stride=[3], dilation=[2], pad_lo=[2], pad_hi=[0]}"),
    "conv_wide_pads": ("x:1,1,4 w:1,1,2", "%y: f64[1,1,11] = conv(%x, %w) {group=1, stride=[1], dilation=[1], pad_lo=[5], pad_hi=[3]}"),
    "conv_spread": ("x:1,2,3,3 w:2,2,3,3", "%y: f64[1,2,5,6] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,2], input_dilation=[2,2]}"),
    "conv_volume": ("x:1,2,3,3,3 w:2,2,2,2,2", "%y: f64[1,2,2,2,2] = conv(%x, %w) {group=1, stride=[1,1,1], dilation=[1,1,1], pad_lo=[0,0,0], pad_hi=[0,0,0]}"),
    "conv_plain": ("x:3,4 w:2,4", "%y: f64[3,2] = conv(%x, %w) {group=1, stride=[], dilation=[], pad_lo=[], pad_hi=[]}"),
    "conv_open": ("x:n,2,5,5 w:3,2,3,3", "%y: f64[n,3,3,3] = conv(%x, %w) {group=1, stride=[2,2], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}"),
    # windows
    "pool_max": ("x:1,2,4,6", "%y: f64[1,2,2,3] = pool_max(%x) {window=[2,2], stride=[2,2], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}"),
    "pool_max_rest": ("x:2,5,7", "%y: f64[2,2,3] = pool_max(%x) {window=[2,2], stride=[2,2], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}"),
    "pool_max_overlap": ("x:1,2,5,5", "%y: f64[1,2,3,3] = pool_max(%x) {window=[3,3], stride=[2,2], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}"),
    "pool_sum": ("x:1,2,5,5", "%y: f64[1,2,3,3] = pool_sum(%x) {window=[3,3], stride=[2,2], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}"),
    "pool_sum_tiles": ("x:2,7", "%y: f64[2,2] = pool_sum(%x) {window=[3], stride=[3], dilation=[1], pad_lo=[0], pad_hi=[0]}"),
    "pool_sum_dilated": ("x:2,9", "%y: f64[2,3] = pool_sum(%x) {window=[3], stride=[2], dilation=[2], pad_lo=[0], pad_hi=[0]}"),
    "pool_argmax": ("x:1,1,4", "%i: i64[1,1,2] = pool_argmax(%x) {window=[2], stride=[2], dilation=[1], pad_lo=[0], pad_hi=[0]}\n%y: f64[1,1,2] = gather_elems(%x, %i) {axis = 2}"),
    # views and joins
    "reshape": ("x:2,6", "%y: f64[3,4] = reshape(%x) {shape = [3,4]}"),
    "transpose": ("x:2,3,4", "%y: f64[4,2,3] = transpose(%x) {perm = [2,0,1]}"),
    "slice": ("x:7,5", "%y: f64[3,2] = slice(%x) {start = [1,2], step = [2,1], size = [3,2]}"),
    "slice_back": ("x:7,5", "%y: f64[3,5] = slice(%x) {start = [6,4], step = [-2,-1], size = [3,5]}"),
    "slice_empty": ("x:3", "%e: f64[0] = slice(%x) {start = [0], step = [1], size = [0]}\n%y: f64[3] = concat(%e, %x) {axis = 0}"),
    "broadcast": ("x:3,1", "%y: f64[2,3,4] = broadcast(%x) {shape = [2,3,4]}"),
    "concat": ("a:2,3 b:2,1 c:2,2", "%y: f64[2,9] = concat(%a, %b, %c, %a) {axis = 1}"),
    "pad": ("x:2,3 v:", "%y: f64[4,10] = pad(%x, %v) {lo = [1,2], hi = [1,1], interior = [0,2]}"),
    # gathers and scatters
    "gather": ("x:4,3 i/i64:2,3@-4..3", "%y: f64[2,3,3] = gather(%x, %i) {axis = 0}"),
    "gather_middle": ("x:2,4,3 i/i32:5@0..3", "%y: f64[2,5,3] = gather(%x, %i) {axis = 1}"),
    "gather_clamped": ("x:3 i/i64:6@-5..5", "%y: f64[6] = gather(%x, %i) {axis = 0}"),
    "gather_elems": ("x:4,3 i/i64:5,2@0..3", "%y: f64[5,2] = gather_elems(%x, %i) {axis = 0}"),
    "gather_nd": ("x:3,4,2 i/i64:5,2@0..2", "%y: f64[5,2] = gather_nd(%x, %i) {batch = 0}"),
    "gather_nd_batch": ("x:2,3,4 i/i64:2,5,1@0..2", "%y: f64[2,5,4] = gather_nd(%x, %i) {batch = 1}"),
    **{f"scatter_elems_{how}": ("x:4,3@0.5..2 i/i64:5,2@0..3 u:5,2@0.5..2", f'%y: f64[4,3] = scatter_elems(%x, %i, %u) {{axis = 0, reduce = "{how}"}}')
       for how in ("none", "add", "mul", "max", "min")},
    **{f"scatter_nd_{how}": ("x:4,3@0.5..2 i/i64:6,1@0..3 u:6,3@0.5..2", f'%y: f64[4,3] = scatter_nd(%x, %i, %u) {{reduce = "{how}"}}')
       for how in ("none", "add", "mul", "max", "min")},
    "scatter_elems_zero": ("a:1@0.5..2 b:2@0..0 c:1@0.5..2 d:1@0..0 e:1@0.5..2 f:1@0..0",
                           '%i: i64[4] = const {0, 0, 1, 2}\n%x: f64[3] = concat(%a, %b) {axis = 0}\n%u: f64[4] = concat(%c, %d, %e, %f) {axis = 0}\n'
                           '%y: f64[3] = scatter_elems(%x, %i, %u) {axis = 0, reduce = "mul"}'),
    "check_index_index": ("x:4 i/i64:3@0..3", "%j: i64[3] = check_index(%i) {size = [4]}\n%y: f64[3] = gather(%x, %j) {axis = 0}"),
    "topk": ("x:3,6", "%y: f64[3,2], %i: i64[3,2] = topk(%x) {axis = 1, k = [2], largest = 1}"),
    "topk_smallest": ("x:5,2", "%y: f64[5,2], %i: i64[5,2] = topk(%x) {axis = 0, k = [5], largest = 0}"),
    "nms": ("x:1,1,4", "%c: f32[1,1,4] = cast(%x) {to = f32}\n%b: f32[1,4,4] = const {0, 0, 1, 1, 0, 2, 1, 3, 0, 4, 1, 5, 0, 6, 1, 7}\n%l: f32[] = const {0.5}\n"
                 "%n: f32[] = const {-100}\n%m: i64[] = const {2}\n%i: i64[1,1,2] = nms(%c, %b, %l, %n, %m) {kind = \"edges\", k = [2]}\n%y: f64[1,1,2] = gather_elems(%x, %i) {axis = 2}"),
    "nonzero_index": ("x:4@0.5..1", "%i: i64[1,u] = nonzero(%x) sym(u)\n%j: i64[u] = reshape(%i) {shape = [u]}\n%g: f64[u] = gather(%x, %j) {axis = 0}\n%s: f64[u] = mul(%g, %g)\n"
                                    "%y: f64[] = reduce_sum(%s) {axes = [0], keep = 0}"),
    "bytes_mask": ("x:2", '%s: str[2] = const {"a", "bc"}\n%b: u8[2,3] = str_encode(%s) {k = [3]}\n%t: str[2] = str_decode(%b)\n%e: bool[2] = eq(%s, %t)\n'
                          "%z: f64[] = const {0}\n%y: f64[2] = select(%e, %x, %z)"),
    "unblock_weights": ("x:2,32", f'%b: u8[3,1,18] = const {{{BLOCKS}}}\n%w: f32[3,32] = dequantize(%b) {{kind = "Q4_0"}}\n%v: f64[3,32] = cast(%w) {{to = f64}}\n'
                        '%y: f64[2,3] = contract(%x, %v) {spec = "tk,rk->tr"}'),
    "matmul_quant": ("x:2,32", f'%b: u8[3,1,18] = const {{{BLOCKS}}}\n%n: f32[2,32] = cast(%x) {{to = f32}}\n%d: f32[2,3] = matmul_quant(%n, %b) {{kind = "Q4_0"}}\n'
                   '%y: f64[2,3] = cast(%d) {to = f64}'),
    # running sums
    **{f"{op}_{e}{r}": ("x:2,4,2", f"%y: f64[2,4,2] = {op}(%x) {{axis = 1, exclusive = {e}, reverse = {r}}}") for op in ("cumsum", "cumprod") for e in (0, 1) for r in (0, 1)},
    "cumprod_zero": ("a:2 b:1@0..0 c:2 d:1@0..0", "%z: f64[6] = concat(%a, %b, %c, %d) {axis = 0}\n%y: f64[6] = cumprod(%z) {axis = 0, exclusive = 0, reverse = 0}"),
    # control
    "if": ("x:3 w:3 c/bool:@0..1", "%y: f64[3] = if(%c) {\n %a: f64[3] = mul(%x, %w)\n %b: f64[3] = tanh(%a)\n return %b\n} else {\n %d: f64[3] = mul(%x, %x)\n return %d\n}"),
    "if_outer": ("x:3 c/bool:@1..1", "%e: f64[3] = exp(%x)\n%y: f64[3], %z: f64[3] = if(%c) {\n return %e, %x\n} else {\n %d: f64[3] = neg(%e)\n return %d, %e\n}"),
    "loop": ("x:3 w:3", "%n: i64[] = const {4}\n%t: bool[] = const {true}\n%y: f64[3] = loop(%n, %t, %x) {scans = 0} (%i: i64[], %c: bool[], %h: f64[3]) {\n"
                        " %a: f64[3] = mul(%h, %w)\n %b: f64[3] = tanh(%a)\n return %c, %b\n}"),
    "loop_scan": ("x:2 s:5,2 r:2,2", '%n: i64[] = const {5}\n%t: bool[] = const {true}\n%h: f64[2], %y: f64[5,2] = loop(%n, %t, %x) {scans = 1} (%i: i64[], %c: bool[], %p: f64[2]) {\n'
                  ' %g: f64[2] = gather(%s, %i) {axis = 0}\n %m: f64[2] = contract(%p, %r) {spec = "k,kn->n"}\n %a: f64[2] = add(%g, %m)\n %b: f64[2] = tanh(%a)\n'
                  " %q: f64[2] = mul(%b, %g)\n return %c, %b, %q\n}"),
    "loop_ends": ("x:2 w:2@1.5..1.9", "%n: i64[] = const {9}\n%t: bool[] = const {true}\n%y: f64[2] = loop(%n, %t, %x) {scans = 0} (%i: i64[], %c: bool[], %h: f64[2]) {\n"
                  " %a: f64[2] = mul(%h, %w)\n %k: i64[] = const {3}\n %g: bool[] = lt(%i, %k)\n return %g, %a\n}"),
    "loop_counts": ("x:4,2 k/i64:@3..3", "%t: bool[] = const {true}\n%z: f64[2] = const {0, 0}\n%y: f64[2] = loop(%k, %t, %z) {scans = 0} (%i: i64[], %c: bool[], %h: f64[2]) {\n"
                    " %g: f64[2] = gather(%x, %i) {axis = 0}\n %f: f64[] = cast(%i) {to = f64}\n %m: f64[2] = mul(%g, %f)\n %q: f64[2] = mul(%m, %g)\n %a: f64[2] = add(%h, %q)\n return %c, %a\n}"),
    "loop_nested": ("x:2 w:2", "%n: i64[] = const {3}\n%t: bool[] = const {true}\n%y: f64[2] = loop(%n, %t, %x) {scans = 0} (%i: i64[], %c: bool[], %h: f64[2]) {\n"
                    " %m: i64[] = const {2}\n %o: f64[2] = loop(%m, %t, %h) {scans = 0} (%j: i64[], %d: bool[], %p: f64[2]) {\n  %a: f64[2] = mul(%p, %w)\n  %b: f64[2] = sin(%a)\n"
                    "  %e: f64[2] = add(%b, %h)\n  return %d, %e\n }\n %r: f64[2] = mul(%o, %w)\n return %c, %r\n}"),
    "loop_branches": ("x:2 w:2", "%n: i64[] = const {4}\n%t: bool[] = const {true}\n%y: f64[2] = loop(%n, %t, %x) {scans = 0} (%i: i64[], %c: bool[], %h: f64[2]) {\n"
                      " %k: i64[] = const {2}\n %l: bool[] = lt(%i, %k)\n %o: f64[2] = if(%l) {\n  %a: f64[2] = mul(%h, %w)\n  %b: f64[2] = tanh(%a)\n  return %b\n } else {\n"
                      "  %d: f64[2] = add(%h, %w)\n  %e: f64[2] = mul(%d, %h)\n  return %e\n }\n return %c, %o\n}"),
    "loop_no_turn": ("x:2 w:2", "%n: i64[] = const {0}\n%t: bool[] = const {true}\n%y: f64[2] = loop(%n, %t, %x) {scans = 0} (%i: i64[], %c: bool[], %h: f64[2]) {\n"
                     " %a: f64[2] = mul(%h, %w)\n return %c, %a\n}"),
    # whole layers
    "composed_softmax": ("x:3,5", "%m: f64[3,1] = reduce_max(%x) {axes = [1], keep = 1}\n%d: f64[3,5] = sub(%x, %m)\n%e: f64[3,5] = exp(%d)\n"
                         "%s: f64[3,1] = reduce_sum(%e) {axes = [1], keep = 1}\n%y: f64[3,5] = div(%e, %s)"),
    "composed_symbols": ("x:n,4 w:4,4", '%p: f64[n,4] = contract(%x, %w) {spec = "nk,kj->nj"}\n%q: f64[2*n,4] = concat(%p, %x) {axis = 0}\n%s: f64[n,2] = slice(%q) {start = [1,3], step = [1,-2], size = [n,2]}\n'
                         "%r: f64[2*n] = reshape(%s) {shape = [2*n]}\n%y: f64[2*n] = tanh(%r)"),
}


def scalar_cases(table):
    """One case for each scalar float operator, from its row of ops.def."""
    for name, count, cls, res in re.findall(r"^SC\((\w+),\s*(\d),\s*(\w+),\s*(\w+),", table, re.M):
        if cls not in ("NUM", "FLT") or res != "same":
            continue
        where = DOMAIN.get(name, "0.3..0.9")
        if count == "1":
            lines = f"%y: f64[2,3] = {name}(%a)"
            if name in ("floor", "ceil", "round", "trunc", "sign"):
                lines = f"%f: f64[2,3] = {name}(%a)\n%y: f64[2,3] = mul(%f, %a)"
            yield name, (f"a:2,3@{where}", lines)
        elif count == "2":
            yield name, (FLOAT_TWO, f"%y: f64[2,3] = {name}(%a, %b)")
        else:
            yield name, (FLOAT_TWO + " c:2,1", f"%y: f64[2,3] = {name}(%a, %b, %c)")


def text(params, lines):
    out, syms = [], set()
    for p in params.split():
        name, rest = p.split(":")
        dims, _, span = rest.partition("@")
        name, _, dt = name.partition("/")
        label = f"{name}@{span}" if span else name
        syms |= set(re.findall("[a-z]", dims))
        out.append(f'%{name} "{label}": {dt or "f64"}[{dims}]')
    data = re.findall(r"sym\((\w+)\)", lines)
    heads = "".join(f" sym {s} in 1..8" for s in sorted(syms)) + "".join(f" sym {s} data in 0..4" for s in data)
    tail = [line for line in lines.split("\n") if line.startswith("%")][-1]
    made = re.findall(r"%(\w+)(?=:)", tail.split(" = ")[0])
    return f"graph{heads} ({', '.join(out)}) {{\n{lines}\nreturn {', '.join(f'%{v} ' + chr(34) + v + chr(34) for v in made)}\n}}\n"


def cases(table):
    all_cases = dict(scalar_cases(table), **CASES)
    return {name: text(*case) for name, case in all_cases.items()}


def operators(texts):
    """Operators that occur in these texts."""
    return set(re.findall(r"= (\w+)", "\n".join(texts)))

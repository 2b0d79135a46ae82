# f16 accumulates in f32 and is rounded once: one by one in f16, the sum would stop at 2048.
# input x = f16[4096] {1}
# output s = f16[] {4096}
graph (%x "x": f16[4096]) {
  %s: f16[] = reduce_sum(%x) {axes = [0], keep = 0}
  return %s "s"
}

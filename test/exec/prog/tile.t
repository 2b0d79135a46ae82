# Vectors, registers, an unrolled loop, a symbolic dimension: a small matrix product with its epilogue.
# input x = f32[2,4] {1, 2, 3, 4, -1, 0.5, 0, 2}
# output y = f32[2,4] {10.5, 0, 31, 2, 0, 2, 10.5, 0}
# output total = f32[] {44}
prog tile
sym n in 1..8
buf x: in f32[n,4]
buf w: const f32[4,4] = {1, -1, 2, 0.5, 2, 0, 1, 0.5, 3, 1, 1, 0.5, -1, -2, 6, 0}
buf bias: const f32[4] = {0.5, 5, 0, -1}
buf y: out f32[n,4]
buf total: out f32[]
buf acc: reg f32x4[2]
for i in 0..n parallel {
  for c in 0..2 unroll {
    acc[c] = splat.4(0.0)
  }
  for k in 0..2 {
    for c in 0..2 unroll {
      acc[c] = fma(splat.4(x[i, k * 2 + c]), w[k * 2 + c, 0:4], acc[c])
    }
  }
  y[i, 0:4] = max(acc[0] + acc[1] + bias[0:4], splat.4(0.0))
}
total[] = reduce.add(shuffle.0.1.2.3.4.5.6.7(y[0, 0:4], y[1, 0:4])) - 12.0

# a record of sums in another type
# run: opt --stop=none
# exit: 4
# expect-stderr: record outer_product: nothing is summed in that type
prog
buf x: in f32[4,3]
buf w: in f32[3,8]
buf y: out f32[4,8]
buf acc: reg f32x8[2,1]
kernel "matmul"
    as outer_product rows 2 panels 1 lanes 8 sum f64 of f32, f32 packed w out y ns 100 {
  for r in 0..2 as row {
    for p in 0..2 as row unroll {
      acc[p, 0] = splat.8(0.0)
    }
    for k in 0..3 as reduce {
      for p in 0..2 as row unroll {
        acc[p, 0] = acc[p, 0] + splat.8(x[r * 2 + p, k]) * w[k, 0:8]
      }
    }
    for p in 0..2 as row unroll {
      y[r * 2 + p, 0:8] = acc[p, 0]
    }
  }
}

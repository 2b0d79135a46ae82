# only mma computes with fragments
# run: opt --stop=none
# exit: 4
# expect-stderr: an operand of an expression is a fragment, expected a scalar or a vector
prog p
threads 65536
buf r: local f32[16,16]
buf acc: reg f32x16x16[1]
kernel "block" {
  for t in 0..1 parallel {
    for w in 0..1 warp {
      acc[w] = splat.16x16(0.0)
      r[0, 0] = reduce.add(acc[w])
    }
  }
}

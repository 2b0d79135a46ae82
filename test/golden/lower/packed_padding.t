# a constant operand slides over its padding: the panels hold zeros there, not what lies behind the constant
# run: --march sse2 --stop=lower
graph (%x "x": f32[1,1,2,1]) {
  %w: f32[1,1,3,4] = const {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
  %y: f32[1,1,4,4] = conv(%w, %x) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,0], pad_hi=[1,0]}
  return %y "y"
}

# expect
ingot 2
prog
math fast
buf x: in f32[1,1,2,1]
buf y: out f32[1,1,4,4]
buf b3: const f32[1,1,4,1,1,2,1,4] = {0, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8, 9, 10, 11, 12, 9, 10, 11, 12, 0, 0, 0, 0}
buf acc: reg f32x4[1,1]
buf b: reg f32x4[1,1]
kernel "conv2x1"
    as outer_product rows 1 panels 1 lanes 4 sum f32 of f32 packed b3, f32 out y ns 12 reason "a single row, 1 panels" {
  for l in 0..4 as batch {
    acc[0, 0] = splat.4(0.0)
    for o in max(1 - l, 0)..min(4 - l, 2) as reduce {
      b[0, 0] = b3[0, 0, l, 0, 0, o, 0, 0:4]
      let x: f32x4 = splat.4(x[0, 0, o, 0])
      acc[0, 0] = acc[0, 0] + b[0, 0] * x
    }
    y[0, 0, l, 0:4] = acc[0, 0]
  }
}

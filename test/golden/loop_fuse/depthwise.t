# a depthwise convolution follows the pointwise one channel by channel
# run: --start=canon --stop=loop_fuse
graph
(%x: f32[1,2,4,4], %w: f32[3,2,1,1], %v: f32[3,1,3,3]) {
  %a: f32[1,3,4,4] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %b: f32[1,3,4,4] = conv(%a, %v) {group=3, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  return %b
}

# expect
ingot 2
prog
buf b1: in f32[1,2,4,4]
buf b2: in f32[3,2,1,1]
buf b3: in f32[3,1,3,3]
buf b4: out f32[1,3,4,4]
buf b5: temp f32[1,2,16] alias b1
buf b6: temp f32[3,2,1] alias b2
buf b7: temp f32[1,1,16]
buf b8: temp f32[1,1,4,4] alias b7
kernel "conv1_dwconv3x3"
    as row_acc sum f32 of f32, f32 out b7 ns 163 reason "the target has no vectors; a step costs 52.0 along the reduction, 7.5 along a row"
    as plain sum f32 of f32, f32 out b4 ns 548 reason "the target has no vectors; a step costs 18.0 along the reduction, 21.0 along a row" {
  for k in 0..3 as batch 0 {
    for l in 0..16 as batch {
      b7[0, 0, l] = 0.0
    }
    for m in 0..2 as reduce {
      for l in 0..16 as batch {
        b7[0, 0, l] = b7[0, 0, l] + b5[0, m, l] * b6[k, m, 0]
      }
    }
    for l in 0..4 as batch 2 {
      for m in 0..4 as batch 2 {
        let acc: f32 = 0.0
        for o in max(1 - l, 0)..min(5 - l, 3) as reduce 2 {
          for p in max(1 - m, 0)..min(5 - m, 3) as reduce 2 {
            set acc = acc + b8[0, 0, l + o - 1, m + p - 1] * b3[k, 0, o, p]
          }
        }
        b4[0, k, l, m] = acc
      }
    }
  }
}

# results of a convolution and a pool are written straight into their part of a concat; a parameter is copied
# run: --start=fuse --stop=lower
graph
(%x: f32[1,2,4,4], %w: f32[3,2,3,3], %b: f32[3,1,1]) {
  %c: f32[1,3,4,4] = conv(%x, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %d: f32[1,3,4,4] = add(%c, %b)
  %e: f32[1,2,4,4] = pool_max(%x) {window=[3,3], stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %f: f32[1,7,4,4] = concat(%d, %x, %e) {axis=1}
  %g: f32[1,7,4,4] = tanh(%f)
  return %g
}

# expect
ingot 2
prog
math single
buf b1: in f32[1,2,4,4]
buf b2: in f32[3,2,3,3]
buf b3: in f32[3,1,1]
buf b4: out f32[1,7,4,4]
buf b7: temp f32[1,7,4,4]
buf b7_view: temp f32[7,16] alias b7
buf b1_view: temp f32[2,16] alias b1
buf b4_view: temp f32[7,16] alias b4
kernel "conv3x3_add" {
  for k in 0..3 {
    for l in 0..4 {
      for m in 0..4 {
        let acc: f32 = 0.0
        for n in 0..2 {
          for o in max(1 - l, 0)..min(5 - l, 3) {
            for p in max(1 - m, 0)..min(5 - m, 3) {
              set acc = acc + b1[0, n, l + o - 1, m + p - 1] * b2[k, n, o, p]
            }
          }
        }
        b7[0, k, l, m] = acc + b3[k, 0, 0]
      }
    }
  }
}
kernel "pool_max3x3" {
  for j in 0..2 {
    for k in 0..4 {
      for l in 0..4 {
        let acc: f32 = -inf
        for m in max(1 - k, 0)..min(5 - k, 3) {
          for n in max(1 - l, 0)..min(5 - l, 3) {
            set acc = max(acc, b1[0, j, k + m - 1, l + n - 1])
          }
        }
        b7[0, 5 + j, k, l] = acc
      }
    }
  }
}
kernel "concat" {
  for j in 0..2 {
    for k in 0..16 {
      b7_view[3 + j, k] = b1_view[j, k]
    }
  }
}
kernel "tanh" {
  for j in 0..7 {
    for k in 0..16 {
      b4_view[j, k] = tanh(b7_view[j, k])
    }
  }
}

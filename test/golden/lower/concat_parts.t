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
kernel "conv3x3_add"
    as plain sum f32 of f32, f32 out b7 ns 1120 reason "the target has no vectors; a step costs 18.0 along the reduction, 21.0 along a row" {
  for k in 0..3 as batch {
    for l in 0..4 as batch {
      for m in 0..4 as batch {
        let acc: f32 = 0.0
        for n in 0..2 as reduce {
          for o in max(1 - l, 0)..min(5 - l, 3) as reduce {
            for p in max(1 - m, 0)..min(5 - m, 3) as reduce {
              set acc = acc + b1[0, n, l + o - 1, m + p - 1] * b2[k, n, o, p]
            }
          }
        }
        b7[0, k, l, m] = acc + b3[k, 0, 0]
      }
    }
  }
}
kernel "pool_max3x3"
    as plain sum f32 of f32 out b7 ns 227 reason "the target has no vectors; a step costs 18.0 along the reduction, 21.0 along a row" {
  for j in 0..2 as batch {
    for k in 0..4 as batch {
      for l in 0..4 as batch {
        let acc: f32 = -inf
        for m in max(1 - k, 0)..min(5 - k, 3) as reduce {
          for n in max(1 - l, 0)..min(5 - l, 3) as reduce {
            set acc = max(acc, b1[0, j, k + m - 1, l + n - 1])
          }
        }
        b7[0, 5 + j, k, l] = acc
      }
    }
  }
}
kernel "concat"
    as plain out b7_view ns 18 reason "the target has no vectors" {
  for j in 0..2 as batch {
    for k in 0..16 as batch {
      b7_view[3 + j, k] = b1_view[j, k]
    }
  }
}
kernel "tanh"
    as plain out b4_view ns 602 reason "the target has no vectors" {
  for j in 0..7 as batch {
    for k in 0..16 as batch {
      b4_view[j, k] = tanh(b7_view[j, k])
    }
  }
}

# Padding clips the bounds of the inner loop of each pair; a pointwise convolution has rows as long as the image.
# run: --start=lower --stop=lower
graph (%x "x": f32[1,2,9,40], %w "w": f32[4,1,3,3], %p "p": f32[6,4,1,1]) {
  %a: f32[1,4,5,40] = conv(%x, %w) {group = 2, stride = [2,1], dilation = [1,1], pad_lo = [1,1], pad_hi = [1,1]}
  %b: f32[1,6,5,40] = conv(%a, %p) {group = 1, stride = [1,1], dilation = [1,1], pad_lo = [0,0], pad_hi = [0,0]}
  return %b "b"
}

# expect
ingot 2
prog
buf x: in f32[1,2,9,40]
buf w: in f32[4,1,3,3]
buf p: in f32[6,4,1,1]
buf b: out f32[1,6,5,40]
buf b5: temp f32[1,4,5,40]
buf b_view: temp f32[6,200] alias b
buf b5_view: temp f32[4,200] alias b5
kernel "dwconv3x3_s2x1"
    as row_acc sum f32 of f32, f32 out b5 ns 11253 reason "the target has no vectors; a step costs 18.0 along the reduction, 4.8 along a row" {
  for j in 0..2 as batch {
    for k in 0..2 as batch {
      for l in 0..5 as batch {
        for m in 0..40 as batch {
          b5[0, j * 2 + k, l, m] = 0.0
        }
        for o in max(1 - l * 2, 0)..min(10 - l * 2, 3) as reduce {
          for p in 0..3 as reduce {
            for m in max(1 - p, 0)..min(41 - p, 40) as batch {
              b5[0, j * 2 + k, l, m] = b5[0, j * 2 + k, l, m] + x[0, j, l * 2 + o - 1, m + p - 1] * w[j * 2 + k, 0, o, p]
            }
          }
        }
      }
    }
  }
}
kernel "conv1x1"
    as row_acc sum f32 of f32, f32 out b_view ns 7686 reason "the target has no vectors; a step costs 28.0 along the reduction, 3.4 along a row" {
  for k in 0..6 as batch {
    for l in 0..200 as batch {
      b_view[k, l] = 0.0
    }
    for n in 0..4 as reduce {
      for l in 0..200 as batch {
        b_view[k, l] = b_view[k, l] + b5_view[n, l] * p[k, n, 0, 0]
      }
    }
  }
}

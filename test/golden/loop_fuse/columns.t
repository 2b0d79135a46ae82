# a sum over rows after a sum over columns needs all of it: nothing is merged
# run: --start=fuse --stop=loop_fuse
graph
(%x: f32[5,7]) {
  %e: f32[5,7] = exp(%x)
  %r: f32[1,7] = reduce_sum(%e) {axes=[0], keep=1}
  %y: f32[5,7] = div(%e, %r)
  return %y
}

# expect
ingot 2
prog
math single
buf b1: in f32[5,7]
buf b2: out f32[5,7]
buf b3: temp f32[5,7]
buf b4: temp f32[1,7]
kernel "exp"
    as plain out b3 ns 189 reason "the target has no vectors" {
  for i in 0..5 as batch {
    for j in 0..7 as batch {
      b3[i, j] = exp(b1[i, j])
    }
  }
}
kernel "reduce_sum"
    as row_acc sum f32 of f32 out b4 ns 40 reason "the target has no vectors; a step costs 23.2 along the reduction, 13.3 along a row" {
  for i in 0..7 as batch {
    b4[0, i] = 0.0
  }
  for j in 0..5 as reduce {
    for i in 0..7 as batch {
      b4[0, i] = b4[0, i] + b3[j, i]
    }
  }
}
kernel "div"
    as plain out b2 ns 63 reason "the target has no vectors" {
  for i in 0..5 as batch {
    for j in 0..7 as batch {
      b2[i, j] = div(b3[i, j], b4[0, j])
    }
  }
}

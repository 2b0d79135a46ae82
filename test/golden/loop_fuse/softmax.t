# softmax is one kernel: its rows are finished one after the other, and the exponentials of a row are all that is kept
# run: --start=fuse --stop=loop_fuse
graph
(%x: f32[5,7]) {
  %m: f32[5,1] = reduce_max(%x) {axes=[1], keep=1}
  %d: f32[5,7] = sub(%x, %m)
  %e: f32[5,7] = exp(%d)
  %s: f32[5,1] = reduce_sum(%e) {axes=[1], keep=1}
  %y: f32[5,7] = div(%e, %s)
  return %y
}

# expect
ingot 2
prog
math single
buf b1: in f32[5,7]
buf b2: out f32[5,7]
buf b3: temp f32[1,1]
buf b5: temp f32[1,7]
buf b6: temp f32[1,1]
kernel "reduce_max_sub_exp_reduce_sum_div"
    as plain sum f32 of f32 out b3 ns 25 reason "the target has no vectors; a step costs 8.9 along the reduction, 29.0 along a row"
    as plain out b5 ns 205 reason "the target has no vectors"
    as plain sum f32 of f32 out b6 ns 25 reason "the target has no vectors; a step costs 8.9 along the reduction, 29.0 along a row"
    as plain out b2 ns 63 reason "the target has no vectors" {
  for i in 0..5 as batch 0 {
    let acc: f32 = -inf
    for j in 0..7 as reduce {
      set acc = max(acc, b1[i, j])
    }
    b3[0, 0] = acc
    for j in 0..7 as batch 2 {
      b5[0, j] = exp(b1[i, j] - b3[0, 0])
    }
    let acc1: f32 = 0.0
    for j in 0..7 as reduce 3 {
      set acc1 = acc1 + b5[0, j]
    }
    b6[0, 0] = acc1
    for j in 0..7 as batch 4 {
      b2[i, j] = div(b5[0, j], b6[0, 0])
    }
  }
}

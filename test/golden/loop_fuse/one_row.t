# softmax of a single row: four folds and maps in one kernel, without a loop around them
# run: --start=fuse --stop=loop_fuse
graph (%x: f32[1,10]) {
  %m: f32[1,1] = reduce_max(%x) {axes=[1], keep=1}
  %d: f32[1,10] = sub(%x, %m)
  %e: f32[1,10] = exp(%d)
  %s: f32[1,1] = reduce_sum(%e) {axes=[1], keep=1}
  %y: f32[1,10] = div(%e, %s)
  return %y
}

# expect
ingot 2
prog
math single
buf b1: in f32[1,10]
buf b2: out f32[1,10]
buf b3: temp f32[1,1]
buf b5: temp f32[1,10]
buf b6: temp f32[1,1]
kernel "reduce_max_sub_exp_reduce_sum_div"
    as plain sum f32 of f32 out b3 ns 7 reason "the target has no vectors"
    as plain out b5 ns 58 reason "the target has no vectors"
    as plain sum f32 of f32 out b6 ns 7 reason "the target has no vectors"
    as plain out b2 ns 18 reason "the target has no vectors" {
  let acc: f32 = -inf
  for j in 0..10 as reduce {
    set acc = max(acc, b1[0, j])
  }
  b3[0, 0] = acc
  for j in 0..10 as batch 2 {
    b5[0, j] = exp(b1[0, j] - b3[0, 0])
  }
  let acc1: f32 = 0.0
  for j in 0..10 as reduce 3 {
    set acc1 = acc1 + b5[0, j]
  }
  b6[0, 0] = acc1
  for j in 0..10 as batch 4 {
    b2[0, j] = div(b5[0, j], b6[0, 0])
  }
}

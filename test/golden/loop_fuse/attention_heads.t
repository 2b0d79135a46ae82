# attention as exporters write it, heads in the middle of the result: head by head, one score matrix
# run: --start=fuse --stop=loop_fuse
graph (%q: f32[16,2,8], %k: f32[16,2,8], %v: f32[16,2,8]) {
  %s: f32[2,16,16] = contract(%q, %k) {spec="ihd,jhd->hij"}
  %m: f32[2,16,1] = reduce_max(%s) {axes=[2], keep=1}
  %d: f32[2,16,16] = sub(%s, %m)
  %e: f32[2,16,16] = exp(%d)
  %t: f32[2,16,1] = reduce_sum(%e) {axes=[2], keep=1}
  %a: f32[2,16,16] = div(%e, %t)
  %y: f32[16,2,8] = contract(%a, %v) {spec="hij,jhd->ihd"}
  return %y
}

# expect
ingot 2
prog
math single
buf b1: in f32[16,2,8]
buf b2: in f32[16,2,8]
buf b3: in f32[16,2,8]
buf b4: out f32[16,2,8]
buf b5: temp f32[1,1,16]
buf b6: temp f32[1,1,1]
buf b8: temp f32[1,1,16]
buf b9: temp f32[1,1,1]
buf b10: temp f32[1,1,16]
kernel "contract_reduce_max_sub_exp_reduce_sum"
    as plain sum f32 of f32, f32 out b5 ns 4922 reason "the target has no vectors; a step costs 8.0 along the reduction, 12.5 along a row"
    as plain sum f32 of f32 out b6 ns 359 reason "the target has no vectors; a step costs 5.0 along the reduction, 12.5 along a row"
    as plain out b8 ns 2997 reason "the target has no vectors"
    as plain sum f32 of f32 out b9 ns 359 reason "the target has no vectors; a step costs 5.0 along the reduction, 12.5 along a row"
    as plain out b10 ns 908 reason "the target has no vectors"
    as plain sum f32 of f32, f32 out b4 ns 4840 reason "the target has no vectors; a step costs 10.0 along the reduction, 12.0 along a row" {
  for i in 0..2 as batch 0 {
    for j in 0..16 as batch 0 {
      for k in 0..16 as batch {
        let acc: f32 = 0.0
        for l in 0..8 as reduce {
          set acc = acc + b1[j, i, l] * b2[k, i, l]
        }
        b5[0, 0, k] = acc
      }
      let acc: f32 = -inf
      for k in 0..16 as reduce 2 {
        set acc = max(acc, b5[0, 0, k])
      }
      b6[0, 0, 0] = acc
      for k in 0..16 as batch 3 {
        b8[0, 0, k] = exp(b5[0, 0, k] - b6[0, 0, 0])
      }
      let acc1: f32 = 0.0
      for k in 0..16 as reduce 4 {
        set acc1 = acc1 + b8[0, 0, k]
      }
      b9[0, 0, 0] = acc1
      for k in 0..16 as batch 5 {
        b10[0, 0, k] = div(b8[0, 0, k], b9[0, 0, 0])
      }
      for k in 0..8 as batch 6 {
        let acc2: f32 = 0.0
        for l in 0..16 as reduce 6 {
          set acc2 = acc2 + b10[0, 0, l] * b3[l, i, k]
        }
        b4[j, i, k] = acc2
      }
    }
  }
}

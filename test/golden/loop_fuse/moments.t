# two states that are updated from the same rows become one kernel
# run: --stop=loop_fuse
graph (%x "x": f32[2,3], %w "w": f32[3,4], %m "m": f32[2,4], %v "v": f32[2,4]) {
  %d: f32[2,4] = contract(%x, %w) {spec = "mk,kn->mn"}
  %a: f32[2,4] = add(%m, %d)
  %q: f32[2,4] = mul(%d, %d)
  %b: f32[2,4] = add(%v, %q)
  return %a "a" next %m, %b "b" next %v
}

# expect
ingot 2
prog
buf m: state f32[2,4]
buf v: state f32[2,4]
buf x: in f32[2,3]
buf w: in f32[3,4]
buf b5: temp f32[1,4]
kernel "contract_add_mul_add"
    as row_acc sum f32 of f32, f32 out b5 ns 41 reason "the target has no vectors; a step costs 36.0 along the reduction, 21.0 along a row"
    as plain out m ns 9 reason "the target has no vectors"
    as plain out v ns 13 reason "the target has no vectors" {
  for i in 0..2 as batch 0 {
    for j in 0..4 as batch {
      b5[0, j] = 0.0
    }
    for k in 0..3 as reduce {
      for j in 0..4 as batch {
        b5[0, j] = b5[0, j] + x[i, k] * w[k, j]
      }
    }
    for j in 0..4 as batch 0 {
      m[i, j] = m[i, j] + b5[0, j]
      v[i, j] = v[i, j] + b5[0, j] * b5[0, j]
    }
  }
}

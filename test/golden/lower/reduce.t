# A long sum has a scalar accumulator, a long result a row of them, in f32 when elements are narrower.
# run: --start=lower --stop=lower
graph (%x "x": f32[3,100], %y "y": f16[5,64]) {
  %a: f32[3] = reduce_sum(%x) {axes = [1], keep = 0}
  %b: f16[64] = reduce_max(%y) {axes = [0], keep = 0}
  %c: f32[3,3] = contract(%x, %x) {spec = "mk,nk->mn"}
  return %a "a", %b "b", %c "c"
}

# expect
ingot 2
prog
buf x: in f32[3,100]
buf y: in f16[5,64]
buf a: out f32[3]
buf b: out f16[64]
buf c: out f32[3,3]
buf row: local f32[64]
kernel "reduce_sum"
    as plain sum f32 of f32 out a ns 205 reason "the target has no vectors; a step costs 2.5 along the reduction, 45.0 along a row" {
  for i in 0..3 as batch {
    let acc: f32 = 0.0
    for j in 0..100 as reduce {
      set acc = acc + x[i, j]
    }
    a[i] = acc
  }
}
kernel "reduce_max"
    as row_acc sum f32 of f16 out b ns 482 reason "the target has no vectors; a step costs 23.2 along the reduction, 4.1 along a row" {
  for i in 0..64 as batch {
    row[i] = -inf
  }
  for j in 0..5 as reduce {
    for i in 0..64 as batch {
      row[i] = max(row[i], cast.f32(y[j, i]))
    }
  }
  for i in 0..64 as batch {
    b[i] = cast.f16.sat(row[i])
  }
}
kernel "contract"
    as plain sum f32 of f32, f32 out c ns 1047 reason "the target has no vectors; a step costs 2.5 along the reduction, 45.0 along a row" {
  for i in 0..3 as batch {
    for j in 0..3 as batch {
      let acc: f32 = 0.0
      for k in 0..100 as reduce {
        set acc = acc + x[i, k] * x[j, k]
      }
      c[i, j] = acc
    }
  }
}

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
kernel "reduce_sum" {
  for i in 0..3 {
    let acc: f32 = 0.0
    for j in 0..100 {
      set acc = acc + x[i, j]
    }
    a[i] = acc
  }
}
kernel "reduce_max" {
  for i in 0..64 {
    row[i] = -inf
  }
  for j in 0..5 {
    for i in 0..64 {
      row[i] = max(row[i], cast.f32(y[j, i]))
    }
  }
  for i in 0..64 {
    b[i] = cast.f16.sat(row[i])
  }
}
kernel "contract" {
  for i in 0..3 {
    for j in 0..3 {
      let acc: f32 = 0.0
      for k in 0..100 {
        set acc = acc + x[i, k] * x[j, k]
      }
      c[i, j] = acc
    }
  }
}

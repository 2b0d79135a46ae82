# an element of registers is a variable, declared where it is written first; one that is read before is zero
# run: --march=avx2 --start=unroll --stop=legalize
prog
buf x: in f32[4,8]
buf y: out f32[4,8]
buf s: out f32[8]
buf acc: reg f32x8[2]
buf last: reg f32x8[1]
kernel "differences" {
  for i in 0..4 {
    for j in 0..2 unroll {
      acc[j] = splat.8(0.0)
    }
    for k in 0..3 {
      pin acc[0] = x[i, 0:8]
      acc[1] = fma(acc[0], acc[0], acc[1])
    }
    y[i, 0:8] = acc[1] - last[0]
    last[0] = acc[1]
  }
  s[0:8] = last[0]
}

# expect
ingot 2
prog
buf x: in f32[4,8]
buf y: out f32[4,8]
buf s: out f32[8]
buf acc: reg f32x8[2]
buf last: reg f32x8[1]
kernel "differences" {
  let last_0: f32x8 = splat.8(0.0)
  for i in 0..4 {
    let acc_0: f32x8 = splat.8(0.0)
    let acc_1: f32x8 = splat.8(0.0)
    for k in 0..3 {
      pin set acc_0 = x[i, 0:8]
      set acc_1 = fma(acc_0, acc_0, acc_1)
    }
    y[i, 0:8] = acc_1 - last_0
    set last_0 = acc_1
  }
  s[0:8] = last_0
}

# every element of registers is a variable; what is declared in a step is declared in each; numbers are folded
# run: --march=avx2 --start=unroll --stop=unroll
prog
buf x: in f32[3,16]
buf y: out f32[3,16]
buf acc: reg f32x8[3,2]
kernel "tile" {
  for i in 0..3 unroll {
    let v: f32x8 = splat.8(x[i, i * 2 + 1])
    for j in 0..2 unroll {
      acc[i, j] = v * x[i, j * 8:8]
    }
  }
  for k in 0..2 {
    for i in 0..3 unroll {
      y[i, k * 8:8] = acc[i, 0] + acc[i, 1]
    }
  }
}

# expect
ingot 2
prog
buf x: in f32[3,16]
buf y: out f32[3,16]
buf acc: reg f32x8[3,2]
kernel "tile" {
  let v: f32x8 = splat.8(x[0, 1])
  acc[0, 0] = v * x[0, 0:8]
  acc[0, 1] = v * x[0, 8:8]
  let v1: f32x8 = splat.8(x[1, 3])
  acc[1, 0] = v1 * x[1, 0:8]
  acc[1, 1] = v1 * x[1, 8:8]
  let v2: f32x8 = splat.8(x[2, 5])
  acc[2, 0] = v2 * x[2, 0:8]
  acc[2, 1] = v2 * x[2, 8:8]
  for k in 0..2 {
    y[0, k * 8:8] = acc[0, 0] + acc[0, 1]
    y[1, k * 8:8] = acc[1, 0] + acc[1, 1]
    y[2, k * 8:8] = acc[2, 0] + acc[2, 1]
  }
}

# vectors as long as the machine's, what is left over as scalars; each piece by itself
# run: --march=sse2 --start=legalize --stop=legalize
prog
buf x: in f32[4,10]
buf k: in f32[4]
buf y: out f32[4,10]
kernel "scale" {
  for i in 0..4 {
    let v: f32x10 = x[i, 0:10]
    set v = select(v > splat.10(0.0), v, splat.10(k[i] + 1.0) * v)
    y[i, 0:10] = v
  }
}

# expect
ingot 2
prog
buf x: in f32[4,10]
buf k: in f32[4]
buf y: out f32[4,10]
kernel "scale" {
  for i in 0..4 {
    let v_0: f32x4 = x[i, 0:4]
    let v_1: f32x4 = x[i, 4:4]
    let v_2: f32 = x[i, 8]
    let v_3: f32 = x[i, 9]
    let tmp: f32 = k[i] + 1.0
    set v_0 = select(v_0 > splat.4(0.0), v_0, splat.4(tmp) * v_0)
    set v_1 = select(v_1 > splat.4(0.0), v_1, splat.4(tmp) * v_1)
    set v_2 = select(v_2 > 0.0, v_2, tmp * v_2)
    set v_3 = select(v_3 > 0.0, v_3, tmp * v_3)
    y[i, 0:4] = v_0
    y[i, 4:4] = v_1
    y[i, 8] = v_2
    y[i, 9] = v_3
  }
}

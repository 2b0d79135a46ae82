# lanes of one or two vectors as long as the result, which machines choose at once; others one by one
# run: --march=sse2 --start=legalize --stop=legalize
prog
buf x: in f32[16]
buf y: out f32[24]
buf z: out f32[2]
kernel "turn" {
  let a: f32x8 = x[0:8]
  y[0:8] = shuffle.7.6.5.4.3.2.1.0(a)
  y[8:8] = shuffle.0.2.4.6.8.10.12.14(a, x[8:8])
  y[16:8] = shuffle.0.4.8.12.1.5.9.13(a, x[8:8])
  z[0] = shuffle.5(a)
  set a = a + splat.8(shuffle.0(a))
  z[1] = shuffle.7(a)
}

# expect
ingot 2
prog
buf x: in f32[16]
buf y: out f32[24]
buf z: out f32[2]
kernel "turn" {
  let a_0: f32x4 = x[0:4]
  let a_1: f32x4 = x[4:4]
  y[0:4] = shuffle.3.2.1.0(a_1)
  y[4:4] = shuffle.3.2.1.0(a_0)
  let tmp_0: f32x4 = x[8:4]
  let tmp_1: f32x4 = x[12:4]
  y[8:4] = shuffle.0.2.4.6(a_0, a_1)
  y[12:4] = shuffle.0.2.4.6(tmp_0, tmp_1)
  let tmp_2: f32x4 = x[8:4]
  let tmp_3: f32x4 = x[12:4]
  y[16:4] = shuffle.0.1.2.3(shuffle.0(a_0), shuffle.0(a_1), shuffle.0(tmp_2), shuffle.0(tmp_3))
  y[20:4] = shuffle.0.1.2.3(shuffle.1(a_0), shuffle.1(a_1), shuffle.1(tmp_2), shuffle.1(tmp_3))
  z[0] = shuffle.1(a_1)
  let tmp: f32 = shuffle.0(a_0)
  set a_0 = a_0 + splat.4(tmp)
  set a_1 = a_1 + splat.4(tmp)
  z[1] = shuffle.3(a_1)
}

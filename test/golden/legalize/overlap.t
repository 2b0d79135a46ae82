# where a store of one piece would change what the next one loads, the value is a variable first
# run: --march=sse2 --start=legalize --stop=legalize
prog
buf x: in f32[12]
buf y: out f32[12]
buf t: temp f32[12]
kernel "shift" {
  t[0:8] = x[0:8]
  t[1:8] = t[0:8]
  t[1:8] = t[1:8] + x[0:8]
  for i in 0..12 {
    y[i] = t[i]
  }
}

# expect
ingot 2
prog
buf x: in f32[12]
buf y: out f32[12]
buf t: temp f32[12]
kernel "shift" {
  t[0:4] = x[0:4]
  t[4:4] = x[4:4]
  let tmp_0: f32x4 = t[0:4]
  let tmp_1: f32x4 = t[4:4]
  t[1:4] = tmp_0
  t[5:4] = tmp_1
  t[1:4] = t[1:4] + x[0:4]
  t[5:4] = t[5:4] + x[4:4]
  for i in 0..12 {
    y[i] = t[i]
  }
}

# registers are told apart by numbers that are known before running
# run: compile --march avx2
# exit: 3
# expect-stderr: :6: index 0 of register buffer r is not a constant in range
prog
buf x: in f32[8]
buf y: out f32[8]
buf r: reg f32x8[4]
kernel "k" {
  r[cast.i64(1.0)] = x[0:8]
  y[0:8] = r[1]
}

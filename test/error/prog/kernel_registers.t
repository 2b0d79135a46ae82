# Registers live within one kernel; back ends refuse what would need them in two.
# run: compile --march avx2
# exit: 3
# expect-stderr: :8: register buffer acc is used by two kernels
prog two
buf y: out f32[8]
buf acc: reg f32x8[]
kernel "first" {
  acc[] = splat.8(1.0)
}
kernel "second" {
  y[0:8] = acc[]
}

# vectors are not handed to kernels
# run: compile --march avx2
# exit: 3
# expect-stderr: :5: a kernel cannot take a vector from outside: variable v
prog p
buf y: out f32[8]
let v: f32x8 = splat.8(1.0)
kernel "one" {
  y[0:8] = v
}

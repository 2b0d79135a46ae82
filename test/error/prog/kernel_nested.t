# kernels do not nest
# run: compile
# exit: 3
# expect-stderr: a kernel is nested in another one
prog p
buf y: out f32[1]
kernel "one" {
  kernel "two" {
    y[0] = 1.0
  }
}

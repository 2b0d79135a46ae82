# two buffers in one place while both are needed
# run: opt --stop=none
# exit: 4
# expect-stderr: a and b overlap while both are live
prog p
arena 256
buf y: out f32[32]
buf a: temp f32[32] at 0
buf b: temp f32[32] at 64
kernel "a" {
  for i in 0..32 {
    a[i] = 1.0
  }
}
kernel "b" {
  for i in 0..32 {
    b[i] = 2.0
  }
}
kernel "y" {
  for i in 0..32 {
    y[i] = a[i] + b[i]
  }
}

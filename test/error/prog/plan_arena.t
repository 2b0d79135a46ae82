# an arena larger than everything in it
# run: opt --stop=none
# exit: 4
# expect-stderr: the arena has 1000000000000 bytes, but its buffers need at most 128
prog p
arena 1000000000000
buf y: out f32[32]
buf a: temp f32[32] at 0
kernel "a" {
  for i in 0..32 {
    a[i] = 1.0
  }
}
kernel "y" {
  for i in 0..32 {
    y[i] = a[i]
  }
}

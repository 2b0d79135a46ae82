# in place of an operand that is read in another order
# run: opt --stop=none
# exit: 4
# expect-stderr: a and b overlap while both are live
prog p
arena 128
buf y: out f32[32]
buf a: temp f32[32] at 0
buf b: temp f32[32] at 0
kernel "a" {
  for i in 0..32 {
    a[i] = cast.f32(i)
  }
}
kernel "b" {
  for i in 0..32 {
    b[i] = a[31 - i]
  }
}
kernel "y" {
  for i in 0..32 {
    y[i] = b[i]
  }
}

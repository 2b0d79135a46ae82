# a family that does not exist
# run: opt --stop=none
# exit: 4
# expect-stderr: expected the family of a kernel, found
prog
buf x: in f32[4]
buf y: out f32[4]
kernel "neg"
    as circles {
  for i in 0..4 {
    y[i] = neg(x[i])
  }
}

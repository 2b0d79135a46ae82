# iterations of a map have no common result
# run: opt --stop=none
# exit: 4
# expect-stderr: loop i has the role reduce, but its iterations have no common result
prog
buf x: in f32[4]
buf y: out f32[4]
kernel "neg"
    as plain out y {
  for i in 0..4 as reduce {
    y[i] = neg(x[i])
  }
}

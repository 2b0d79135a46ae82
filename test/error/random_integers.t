# random numbers are made of floats only
# run: opt FILE
# exit: 4
# expect-stderr: random numbers must be floats
graph
(%x: f32[2]) {
  %r: i64[2] = random {shape=[2], to=i64, seed=1}
  return %r
}

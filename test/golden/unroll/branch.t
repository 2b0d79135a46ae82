# of conditions that become known what runs is left
# run: --march=avx2 --start=unroll --stop=unroll
prog
sym n in 1..4
buf x: in f32[n,8]
buf y: out f32[n,8]
kernel "edge" {
  for i in 0..n {
    for j in 0..8 step 4 unroll {
      if j == 0 {
        y[i, j] = 0.0
      } else {
        y[i, j] = x[i, j - 4]
      }
      if i < j {
        y[i, j + 1] = 1.0
      }
    }
  }
}

# expect
ingot 2
prog
sym n in 1..4
buf x: in f32[n,8]
buf y: out f32[n,8]
kernel "edge" {
  for i in 0..n {
    y[i, 0] = 0.0
    if i < 0 {
      y[i, 1] = 1.0
    }
    y[i, 4] = x[i, 0]
    if i < 4 {
      y[i, 5] = 1.0
    }
  }
}

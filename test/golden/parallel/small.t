# less work than handing it out costs stays with one thread
# run: --threads=2 --start=parallel --stop=parallel
prog
threads 2
buf x: in f32[8,8]
buf y: out f32[8,8]
kernel "small" {
  for i in 0..8 parallel {
    for j in 0..8 parallel {
      y[i, j] = x[i, j] + 1.0
    }
  }
}

# expect
ingot 2
prog
threads 2
buf x: in f32[8,8]
buf y: out f32[8,8]
kernel "small" {
  for i in 0..8 {
    for j in 0..8 {
      y[i, j] = x[i, j] + 1.0
    }
  }
}

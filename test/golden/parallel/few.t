# two long iterations are counted together with those of the loop inside, so that all four threads have a share
# run: --threads=4 --start=parallel --stop=parallel
prog
threads 4
buf x: in f32[2,64,256]
buf y: out f32[2,64,256]
kernel "few" {
  for n in 0..2 parallel {
    for i in 0..64 parallel {
      for j in 0..256 {
        y[n, i, j] = tanh(x[n, i, j])
      }
    }
  }
}

# expect
ingot 2
prog
threads 4
buf x: in f32[2,64,256]
buf y: out f32[2,64,256]
kernel "few" {
  for n in 0..2 parallel chunk 4 {
    for i in 0..64 parallel {
      for j in 0..256 {
        y[n, i, j] = tanh(x[n, i, j])
      }
    }
  }
}

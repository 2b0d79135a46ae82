# a kernel of two loops becomes two kernels; the one whose iterations depend on each other is run by one thread
# run: --threads=2 --start=parallel --stop=parallel
prog
threads 2
buf x: in f32[64,256]
buf y: out f32[64,256]
buf z: out f32[256]
kernel "two" {
  for i in 0..64 parallel {
    for j in 0..256 {
      y[i, j] = tanh(x[i, j])
    }
  }
  for i in 0..64 {
    for j in 0..256 {
      z[j] = tanh(z[j] + x[i, j])
    }
  }
}

# expect
ingot 2
prog
threads 2
buf x: in f32[64,256]
buf y: out f32[64,256]
buf z: out f32[256]
kernel "two" {
  for i in 0..64 parallel chunk 4 {
    for j in 0..256 {
      y[i, j] = tanh(x[i, j])
    }
  }
}
kernel "two" {
  for i in 0..64 {
    for j in 0..256 {
      z[j] = tanh(z[j] + x[i, j])
    }
  }
}

# a temporary that only the shared loop touches becomes scratch, of which each thread has its own
# run: --threads=2 --start=parallel --stop=parallel
prog
threads 2
buf x: in f32[64,256]
buf y: out f32[64,256]
buf row: temp f32[1,256]
kernel "rows" {
  for i in 0..64 parallel {
    for j in 0..256 {
      row[0, j] = exp(x[i, j])
    }
    let sum: f32 = 0.0
    for j in 0..256 {
      set sum = sum + row[0, j]
    }
    for j in 0..256 {
      y[i, j] = row[0, j] * sum
    }
  }
}

# expect
ingot 2
prog
threads 2
buf x: in f32[64,256]
buf y: out f32[64,256]
buf row: local f32[1,256]
kernel "rows" {
  for i in 0..64 parallel chunk 4 {
    for j in 0..256 {
      row[0, j] = exp(x[i, j])
    }
    let sum: f32 = 0.0
    for j in 0..256 {
      set sum = sum + row[0, j]
    }
    for j in 0..256 {
      y[i, j] = row[0, j] * sum
    }
  }
}

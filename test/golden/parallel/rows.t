# the second kernel by strips of i: by o, every thread would read what the other wrote
# run: --threads=2 --start=parallel --stop=parallel
prog
threads 2
buf x: in f32[128,64]
buf w: in f32[64,16]
buf y: out f32[16,128]
buf a: temp f32[128,64]
kernel "first" {
  for i in 0..128 parallel {
    for j in 0..64 parallel {
      a[i, j] = tanh(x[i, j])
    }
  }
}
kernel "second" {
  for o in 0..16 parallel {
    for i in 0..128 parallel {
      let acc: f32 = 0.0
      for k in 0..64 {
        set acc = acc + a[i, k] * w[k, o]
      }
      y[o, i] = acc
    }
  }
}

# expect
ingot 2
prog
threads 2
buf x: in f32[128,64]
buf w: in f32[64,16]
buf y: out f32[16,128]
buf a: temp f32[128,64]
kernel "first" {
  for i in 0..128 parallel chunk 11 {
    for j in 0..64 {
      a[i, j] = tanh(x[i, j])
    }
  }
}
kernel "second" {
  for strip in 0..128 step 8 parallel chunk 1 {
    for o in 0..16 {
      for i in strip..strip + 8 {
        let acc: f32 = 0.0
        for k in 0..64 {
          set acc = acc + a[i, k] * w[k, o]
        }
        y[o, i] = acc
      }
    }
  }
}

# by strips of c: by rows of 56 bytes, threads would write the same cache line in each of 116 planes
# run: --threads=2 --start=parallel --stop=parallel
prog
threads 2
buf x: in f32[14,14,116]
buf y: out f32[116,14,14]
kernel "planes" {
  for h in 0..14 parallel {
    for c in 0..116 parallel {
      for w in 0..14 {
        y[c, h, w] = (x[h, w, c] + 1.0)
      }
    }
  }
}

# expect
ingot 2
prog
threads 2
buf x: in f32[14,14,116]
buf y: out f32[116,14,14]
kernel "planes" {
  for strip in 0..116 step 29 parallel chunk 1 {
    for h in 0..14 {
      for c in strip..strip + 29 {
        for w in 0..14 {
          y[c, h, w] = x[h, w, c] + 1.0
        }
      }
    }
  }
}

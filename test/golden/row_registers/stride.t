# Rows of 48 elements: every second one starts at a whole vector, 3 vectors after the previous one.
# run: --start=row_registers --stop=row_registers
prog
threads 65536
buf x: in f32[2,32]
buf y: out f32[2,32]
buf s: local f32[4,48]
kernel "rows" {
  for t in 0..1 parallel {
    for i in 0..2 {
      s[2*i, 0:32] = x[i, 0:32]
    }
    for i in 0..2 {
      y[i, 0:32] = s[2*i, 0:32]
    }
  }
}

# expect
ingot 2
prog
threads 65536
buf x: in f32[2,32]
buf y: out f32[2,32]
buf s: local f32[4,48]
buf s1: reg f32x32[6]
kernel "rows" {
  for t in 0..1 parallel {
    for i in 0..2 unroll {
      s1[i * 3] = x[i, 0:32]
    }
    for i in 0..2 unroll {
      y[i, 0:32] = s1[i * 3]
    }
  }
}

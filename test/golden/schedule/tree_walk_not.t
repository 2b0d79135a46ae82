# a loop that writes to memory while it goes on, without a known end, is no walk, whatever stands in registers
# run: --march avx2 --start=schedule --stop=schedule
prog tree_walk_not
buf next: in i64[8]
buf y: out i64[8]
buf at: reg i64[2]
kernel "heap" tree_walk {
  for i in 0..2 unroll {
    at[i] = i
  }
  while at[0] < at[1] {
    for i in 0..2 unroll {
      at[i] = next[mod(at[i], 8)]
    }
    y[mod(at[0], 8)] = at[1]
  }
}

# expect
ingot 2
prog tree_walk_not
buf next: in i64[8]
buf y: out i64[8]
buf at: reg i64[2]
kernel "heap" {
  for i in 0..2 unroll {
    at[i] = i
  }
  while at[0] < at[1] {
    for i in 0..2 unroll {
      at[i] = next[mod(at[i], 8)]
    }
    y[mod(at[0], 8)] = at[1]
  }
}

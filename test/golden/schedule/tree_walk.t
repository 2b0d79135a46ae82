# a kernel that steps until nothing moves, with elements in registers, says that it walks; one of plain loops does not
# run: --march avx2 --start=schedule --stop=schedule
prog tree_walk
buf next: in i64[8]
buf y: out i64[2]
buf z: out i64[1]
buf at: reg i64[2]
kernel "side by side" {
  for i in 0..2 unroll {
    at[i] = i
  }
  while at[0] < at[1] {
    for i in 0..2 unroll {
      at[i] = next[mod(at[i], 8)]
    }
  }
  for i in 0..2 unroll {
    y[i] = at[i]
  }
}
kernel "alone" tree_walk {
  let k: i64 = 0
  while k < 8 {
    set k = next[mod(k, 8)]
  }
  z[0] = k
}

# expect
ingot 2
prog tree_walk
buf next: in i64[8]
buf y: out i64[2]
buf z: out i64[1]
buf at: reg i64[2]
kernel "side by side" tree_walk {
  for i in 0..2 unroll {
    at[i] = i
  }
  while at[0] < at[1] {
    for i in 0..2 unroll {
      at[i] = next[mod(at[i], 8)]
    }
  }
  for i in 0..2 unroll {
    y[i] = at[i]
  }
}
kernel "alone" {
  let k: i64 = 0
  while k < 8 {
    set k = next[mod(k, 8)]
  }
  z[0] = k
}

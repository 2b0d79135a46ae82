# a table of indices is bytes, and the index that is loaded is i64 again
# run: --start=shrink_consts --stop=shrink_consts
prog
buf x: in f32[24]
buf y: out f32[24]
buf table: const i64[24] = {0, 7, 14, 21, 4, 11, 18, 1, 8, 15, 22, 5, 12, 19, 2, 9, 16, 23, 6, 13, 20, 3, 10, 17}
kernel "k" {
  for i in 0..24 {
    y[i] = x[table[i]]
  }
}

# expect
ingot 2
prog
buf x: in f32[24]
buf y: out f32[24]
buf table: const i8[24] = {0, 7, 14, 21, 4, 11, 18, 1, 8, 15, 22, 5, 12, 19, 2, 9, 16, 23, 6, 13, 20, 3, 10, 17}
kernel "k" {
  for i in 0..24 {
    y[i] = x[cast.i64(table[i])]
  }
}

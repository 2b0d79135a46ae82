# what would save 63 bytes keeps its type, what saves 66 does not
# run: --start=shrink_consts --stop=shrink_consts
prog
buf y: out i32[22]
buf few: const i32[21] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
buf more: const i32[22] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}
kernel "k" {
  for i in 0..21 {
    y[i] = few[i] + more[i]
  }
}

# expect
ingot 2
prog
buf y: out i32[22]
buf few: const i32[21] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
buf more: const i8[22] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}
kernel "k" {
  for i in 0..21 {
    y[i] = few[i] + cast.i32(more[i])
  }
}

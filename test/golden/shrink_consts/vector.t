# what a vector loads stays as it was packed
# run: --start=shrink_consts --stop=shrink_consts
prog
buf y: out i32[24]
buf packed: const i32[24] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}
buf plain: const i32[24] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}
kernel "k" {
  for i in 0..24 step 8 {
    y[i:8] = packed[i:8]
  }
  for i in 0..24 {
    y[i] = y[i] + plain[i]
  }
}

# expect
ingot 2
prog
buf y: out i32[24]
buf packed: const i32[24] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}
buf plain: const i8[24] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}
kernel "k" {
  for i in 0..24 step 8 {
    y[i:8] = packed[i:8]
  }
  for i in 0..24 {
    y[i] = y[i] + cast.i32(plain[i])
  }
}

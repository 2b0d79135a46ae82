# i8 where it holds all, -128 to 127; u8 for what reaches 255
# run: --start=shrink_consts --stop=shrink_consts
prog
buf x: in i32[22]
buf y: out i32[22]
buf below: const i32[22] = {-128, 127, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
buf above: const i32[22] = {0, 255, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
kernel "k" {
  for i in 0..22 {
    y[i] = x[i] * below[i] + above[i]
  }
}

# expect
ingot 2
prog
buf x: in i32[22]
buf y: out i32[22]
buf below: const i8[22] = {-128, 127, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
buf above: const u8[22] = {0, 255, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
kernel "k" {
  for i in 0..22 {
    y[i] = x[i] * cast.i32(below[i]) + cast.i32(above[i])
  }
}

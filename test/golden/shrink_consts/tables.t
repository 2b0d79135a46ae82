# whole bytes, signed and not, also through a view; 16 bits only where much is saved; vectors, floats, few elements and 2^63 stay
# run: --start=shrink_consts --stop=shrink_consts
prog
buf x: in i32[24]
buf y: out i32[24]
buf signed: const i32[24] = {-128, 127, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}
buf plain: const i64[2,12] = {0, 255, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}
buf seen: temp i64[24] alias plain
buf wider: const i32[24] = {0, 256, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}
buf packed: const i32[24] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}
buf reals: const f32[24] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}
buf huge: const u64[12] = {18446744073709551615, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
buf few: const i32[4] = {1, 2, 3, 4}
kernel "a" {
  for i in 0..24 {
    y[i] = x[i] * signed[i] + cast.i32(plain[0, 1] + seen[i]) + wider[i] + few[0] + cast.i32(reals[i]) + cast.i32(huge[1])
  }
  for i in 0..24 step 4 {
    y[i:4] = y[i:4] + packed[i:4]
  }
}

# expect
ingot 2
prog
buf x: in i32[24]
buf y: out i32[24]
buf signed: const i8[24] = {-128, 127, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}
buf plain: const u8[2,12] = {0, 255, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}
buf seen: temp u8[24] alias plain
buf wider: const i32[24] = {0, 256, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}
buf packed: const i32[24] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}
buf reals: const f32[24] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}
buf huge: const u64[12] = {18446744073709551615, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
buf few: const i32[4] = {1, 2, 3, 4}
kernel "a" {
  for i in 0..24 {
    y[i] = x[i] * cast.i32(signed[i]) + cast.i32(cast.i64(plain[0, 1]) + cast.i64(seen[i])) + wider[i] + few[0] + cast.i32(reals[i]) + cast.i32(huge[1])
  }
  for i in 0..24 step 4 {
    y[i:4] = y[i:4] + packed[i:4]
  }
}

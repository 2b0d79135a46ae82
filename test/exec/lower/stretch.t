# Extents that only turn out to be 1 when running are stretched.
# input x = i32[1,3] {1, 2, 3}
# input y = i32[2,1] {10, 20}
# input z = i32[4,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
# output a = i32[2,3] {11, 12, 13, 21, 22, 23}
# output b = i32[4,3] {2, 4, 6, 5, 7, 9, 8, 10, 12, 11, 13, 15}
graph sym n in 0..8 sym m in 0..8 (%x "x": i32[n,3], %y "y": i32[2,m], %z "z": i32[4,3]) {
  %a: i32[2,3] = add(%x, %y)
  %b: i32[4,3] = add(%x, %z)
  return %a "a", %b "b"
}

# Along the last and the first axis; an empty operand; symbolic extents add up.
# input x = i16[2,1] {1, 2}
# input y = i16[2,2] {3, 4, 5, 6}
# input e = i16[2,0] {}
# output a = i16[2,4] {1, 3, 4, 1, 2, 5, 6, 2}
# output b = i16[4,2] {3, 4, 5, 6, 3, 4, 5, 6}
graph sym n in 1..4 (%x "x": i16[2,1], %y "y": i16[n,2], %e "e": i16[2,0]) {
  %z: i16[2,2] = const {3, 4, 5, 6}
  %a: i16[2,4] = concat(%x, %e, %z, %x) {axis = 1}
  %b: i16[n+2,2] = concat(%y, %z) {axis = 0}
  return %a "a", %b "b"
}

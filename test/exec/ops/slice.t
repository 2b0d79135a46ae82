# Forwards, backwards with a step, nothing at all, and symbolic ends.
# input x = i32[4,5] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
# output a = i32[2,3] {5, 7, 9, 10, 12, 14}
# output b = i32[4,2] {19, 16, 14, 11, 9, 6, 4, 1}
# output c = i32[4,0] {}
# output d = i32[3,1] {8, 13, 18}
graph sym n in 1..8 (%x "x": i32[n,5]) {
  %a: i32[2,3] = slice(%x) {start = [1,0], step = [1,2], size = [2,3]}
  %b: i32[n,2] = slice(%x) {start = [n-1,4], step = [-1,-3], size = [n,2]}
  %c: i32[n,0] = slice(%x) {start = [0,5], step = [1,1], size = [n,0]}
  %d: i32[n-1,1] = slice(%x) {start = [1,3], step = [1,1], size = [n-1,1]}
  return %a "a", %b "b", %c "c", %d "d"
}

# Outside, between the elements, and around nothing.
# input x = i32[2,2] {1, 2, 3, 4}
# input v = i32[] {9}
# input e = f32[2,0] {}
# output a = i32[3,4] {9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9, 9}
# output b = i32[4,6] {1, 9, 9, 9, 2, 9, 9, 9, 9, 9, 9, 9, 3, 9, 9, 9, 4, 9, 9, 9, 9, 9, 9, 9}
# output c = f32[2,1] {0.5, 0.5}
graph sym n in 1..4 (%x "x": i32[n,2], %v "v": i32[], %e "e": f32[2,0]) {
  %a: i32[n+1,4] = pad(%x, %v) {lo = [1,0], hi = [0,2], interior = [0,0]}
  %b: i32[2*n,6] = pad(%x, %v) {lo = [0,0], hi = [1,1], interior = [1,3]}
  %h: f32[] = const {0.5}
  %c: f32[2,1] = pad(%e, %h) {lo = [0,1], hi = [0,0], interior = [0,0]}
  return %a "a", %b "b", %c "c"
}

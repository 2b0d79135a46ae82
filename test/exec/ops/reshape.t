# Row-major order is kept; to a scalar and back; with a symbolic extent; of nothing.
# input x = i32[2,3] {1, 2, 3, 4, 5, 6}
# input s = f32[1,1] {5}
# input e = i8[0,3] {}
# output a = i32[3,2] {1, 2, 3, 4, 5, 6}
# output b = f32[] {5}
# output c = i32[6] {1, 2, 3, 4, 5, 6}
# output d = i8[3,0] {}
graph sym n in 1..4 (%x "x": i32[n,3], %s "s": f32[1,1], %e "e": i8[0,3]) {
  %a: i32[3,n] = reshape(%x) {shape = [3,n]}
  %b: f32[] = reshape(%s) {shape = []}
  %c: i32[3*n] = reshape(%x) {shape = [3*n]}
  %d: i8[3,0] = reshape(%e) {shape = [3,0]}
  return %a "a", %b "b", %c "c", %d "d"
}

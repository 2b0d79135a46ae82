# Largest with NaN first, smallest with NaN last, ties by lower index; another axis; -0 equals 0.
# input x = f32[5] {3, nan, 3, 1, -2}
# input y = i32[3,2] {1, 9, 5, 9, 3, -1}
# input z = f32[3] {0, -0.0, -1}
# output a = f32[4] {nan, 3, 3, 1}
# output ai = i64[4] {1, 0, 2, 3}
# output b = f32[5] {-2, 1, 3, 3, nan}
# output bi = i64[5] {4, 3, 0, 2, 1}
# output c = i32[2,2] {5, 9, 3, 9}
# output ci = i64[2,2] {1, 0, 2, 1}
# output di = i64[3] {0, 1, 2}
graph (%x "x": f32[5], %y "y": i32[3,2], %z "z": f32[3]) {
  %a: f32[4], %ai: i64[4] = topk(%x) {axis = 0, k = [4], largest = 1}
  %b: f32[5], %bi: i64[5] = topk(%x) {axis = 0, k = [5], largest = 0}
  %c: i32[2,2], %ci: i64[2,2] = topk(%y) {axis = 0, k = [2], largest = 1}
  %d: f32[3], %di: i64[3] = topk(%z) {axis = 0, k = [3], largest = 1}
  return %a "a", %ai "ai", %b "b", %bi "bi", %c "c", %ci "ci", %di "di"
}

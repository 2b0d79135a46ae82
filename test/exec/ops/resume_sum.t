# Sums that begin with what came before: 2^24 takes no ones one by one, but their sum.
# input x = f32[2,3] {1, 1, 1, 4, 5, 6}
# input b = f32[2] {16777216, -1}
# input c = i32[1,1] {7}
# output a = f32[2] {16777216, 14}
# output r = f32[2] {16777220, 14}
# output k = i32[1,1] {25}
graph (%x "x": f32[2,3], %b "b": f32[2], %c "c": i32[1,1]) {
  %a: f32[2] = resume_sum(%x, %b) {axes = [1], keep = 0}
  %s: f32[2] = reduce_sum(%x) {axes = [1], keep = 0}
  %r: f32[2] = add(%s, %b)
  %i: i32[2,3] = cast(%x) {to = i32}
  %k: i32[1,1] = resume_sum(%i, %c) {axes = [0,1], keep = 1}
  return %a "a", %r "r", %k "k"
}

# One operand, integers; the smallest one has no opposite.
# input a = i32[4] {5, -5, 0, -2147483648}
# output neg = i32[4] {-5, 5, 0, -2147483648}
# output abs = i32[4] {5, 5, 0, -2147483648}
# output sign = i32[4] {1, -1, 0, -1}
# output not = i32[4] {-6, 4, -1, 2147483647}
graph (%a "a": i32[4]) {
  %neg: i32[4] = neg(%a)
  %abs: i32[4] = abs(%a)
  %sign: i32[4] = sign(%a)
  %not: i32[4] = not(%a)
  return %neg "neg", %abs "abs", %sign "sign", %not "not"
}

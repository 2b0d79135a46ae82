# What is NaN, what is infinite.
# input a = f32[4] {1, inf, -inf, nan}
# output isnan = bool[4] {false, false, false, true}
# output isinf = bool[4] {false, true, true, false}
graph (%a "a": f32[4]) {
  %isnan: bool[4] = isnan(%a)
  %isinf: bool[4] = isinf(%a)
  return %isnan "isnan", %isinf "isinf"
}

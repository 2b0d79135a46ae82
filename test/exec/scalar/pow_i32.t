# Integer powers by multiplication; negative powers truncate.
# input a = i32[7] {3, 2, 2, -1, 1, 0, 7}
# input b = i32[7] {4, 40, -1, -3, -2, 0, 0}
# output pow = i32[7] {81, 0, 0, -1, 1, 1, 1}
graph (%a "a": i32[7], %b "b": i32[7]) {
  %pow: i32[7] = pow(%a, %b)
  return %pow "pow"
}

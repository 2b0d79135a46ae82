# Powers of floats.
# input a = f32[5] {2, 2, 9, -2, 0}
# input b = f32[5] {10, -1, 0.5, 3, 0}
# output pow = f32[5] {1024, 0.5, 3, -8, 1}
graph (%a "a": f32[5], %b "b": f32[5]) {
  %pow: f32[5] = pow(%a, %b)
  return %pow "pow"
}

# Rounded once: the low part of the product survives.
# input a = f32[2] {1.00048828125, 2}
# input b = f32[2] {1.00048828125, 3}
# input c = f32[2] {-1.0009765625, 4}
# output y = f32[2] {2.384185791015625e-07, 10}
graph (%a "a": f32[2], %b "b": f32[2], %c "c": f32[2]) {
  %y: f32[2] = fma(%a, %b, %c)
  return %y "y"
}

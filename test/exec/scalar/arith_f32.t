# Arithmetic with infinities, NaN and zero.
# input a = f32[8] {1.5, -7, 3, 0, 1, nan, inf, 16777216}
# input b = f32[8] {2, 2, 0, 0, nan, 1, inf, 1}
# output add = f32[8] {3.5, -5, 3, 0, nan, nan, inf, 16777216}
# output sub = f32[8] {-0.5, -9, 3, 0, nan, nan, nan, 16777215}
# output mul = f32[8] {3, -14, 0, 0, nan, nan, inf, 16777216}
# output div = f32[8] {0.75, -3.5, inf, nan, nan, nan, nan, 16777216}
# output max = f32[8] {2, 2, 3, 0, nan, nan, inf, 16777216}
# output min = f32[8] {1.5, -7, 0, 0, nan, nan, inf, 1}
graph (%a "a": f32[8], %b "b": f32[8]) {
  %add: f32[8] = add(%a, %b)
  %sub: f32[8] = sub(%a, %b)
  %mul: f32[8] = mul(%a, %b)
  %div: f32[8] = div(%a, %b)
  %max: f32[8] = max(%a, %b)
  %min: f32[8] = min(%a, %b)
  return %add "add", %sub "sub", %mul "mul", %div "div", %max "max", %min "min"
}

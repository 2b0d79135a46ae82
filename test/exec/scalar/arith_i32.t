# Integers wrap; division truncates; x / 0 is 0 and so is x % 0.
# input a = i32[7] {7, -7, 7, -7, 5, -2147483648, 2147483647}
# input b = i32[7] {2, 2, -2, -2, 0, -1, 2}
# output add = i32[7] {9, -5, 5, -9, 5, 2147483647, -2147483647}
# output sub = i32[7] {5, -9, 9, -5, 5, -2147483647, 2147483645}
# output mul = i32[7] {14, -14, -14, 14, 0, -2147483648, -2}
# output div = i32[7] {3, -3, -3, 3, 0, -2147483648, 1073741823}
# output mod = i32[7] {1, 1, -1, -1, 0, 0, 1}
# output fmod = i32[7] {1, -1, 1, -1, 0, 0, 1}
# output max = i32[7] {7, 2, 7, -2, 5, -1, 2147483647}
# output min = i32[7] {2, -7, -2, -7, 0, -2147483648, 2}
graph (%a "a": i32[7], %b "b": i32[7]) {
  %add: i32[7] = add(%a, %b)
  %sub: i32[7] = sub(%a, %b)
  %mul: i32[7] = mul(%a, %b)
  %div: i32[7] = div(%a, %b)
  %mod: i32[7] = mod(%a, %b)
  %fmod: i32[7] = fmod(%a, %b)
  %max: i32[7] = max(%a, %b)
  %min: i32[7] = min(%a, %b)
  return %add "add", %sub "sub", %mul "mul", %div "div", %mod "mod", %fmod "fmod", %max "max", %min "min"
}

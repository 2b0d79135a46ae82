# Unsigned bytes wrap and divide without sign.
# input a = u8[4] {200, 3, 255, 9}
# input b = u8[4] {100, 5, 255, 0}
# output add = u8[4] {44, 8, 254, 9}
# output sub = u8[4] {100, 254, 0, 9}
# output mul = u8[4] {32, 15, 1, 0}
# output div = u8[4] {2, 0, 1, 0}
# output mod = u8[4] {0, 3, 0, 0}
# output max = u8[4] {200, 5, 255, 9}
# output min = u8[4] {100, 3, 255, 0}
graph (%a "a": u8[4], %b "b": u8[4]) {
  %add: u8[4] = add(%a, %b)
  %sub: u8[4] = sub(%a, %b)
  %mul: u8[4] = mul(%a, %b)
  %div: u8[4] = div(%a, %b)
  %mod: u8[4] = mod(%a, %b)
  %max: u8[4] = max(%a, %b)
  %min: u8[4] = min(%a, %b)
  return %add "add", %sub "sub", %mul "mul", %div "div", %mod "mod", %max "max", %min "min"
}

# Comparisons: NaN is unequal to everything, -0 equals 0.
# input a = f32[6] {1, 2, 2, nan, nan, 0}
# input b = f32[6] {2, 2, 1, 1, nan, -0.0}
# output eq = bool[6] {false, true, false, false, false, true}
# output ne = bool[6] {true, false, true, true, true, false}
# output lt = bool[6] {true, false, false, false, false, false}
# output le = bool[6] {true, true, false, false, false, true}
# output gt = bool[6] {false, false, true, false, false, false}
# output ge = bool[6] {false, true, true, false, false, true}
graph (%a "a": f32[6], %b "b": f32[6]) {
  %eq: bool[6] = eq(%a, %b)
  %ne: bool[6] = ne(%a, %b)
  %lt: bool[6] = lt(%a, %b)
  %le: bool[6] = le(%a, %b)
  %gt: bool[6] = gt(%a, %b)
  %ge: bool[6] = ge(%a, %b)
  return %eq "eq", %ne "ne", %lt "lt", %le "le", %gt "gt", %ge "ge"
}

# u64 compares without sign.
# input a = u64[3] {1, 18446744073709551615, 5}
# input b = u64[3] {18446744073709551615, 1, 5}
# output eq = bool[3] {false, false, true}
# output ne = bool[3] {true, true, false}
# output lt = bool[3] {true, false, false}
# output le = bool[3] {true, false, true}
# output gt = bool[3] {false, true, false}
# output ge = bool[3] {false, true, true}
graph (%a "a": u64[3], %b "b": u64[3]) {
  %eq: bool[3] = eq(%a, %b)
  %ne: bool[3] = ne(%a, %b)
  %lt: bool[3] = lt(%a, %b)
  %le: bool[3] = le(%a, %b)
  %gt: bool[3] = gt(%a, %b)
  %ge: bool[3] = ge(%a, %b)
  return %eq "eq", %ne "ne", %lt "lt", %le "le", %gt "gt", %ge "ge"
}

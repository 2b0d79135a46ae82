# On bool the bit operators are the logical ones.
# input a = bool[4] {false, false, true, true}
# input b = bool[4] {false, true, false, true}
# output and = bool[4] {false, false, false, true}
# output or = bool[4] {false, true, true, true}
# output xor = bool[4] {false, true, true, false}
# output eq = bool[4] {true, false, false, true}
graph (%a "a": bool[4], %b "b": bool[4]) {
  %and: bool[4] = and(%a, %b)
  %or: bool[4] = or(%a, %b)
  %xor: bool[4] = xor(%a, %b)
  %eq: bool[4] = eq(%a, %b)
  return %and "and", %or "or", %xor "xor", %eq "eq"
}

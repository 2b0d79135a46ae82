# Negation on bool.
# input a = bool[2] {false, true}
# output not = bool[2] {true, false}
graph (%a "a": bool[2]) {
  %not: bool[2] = not(%a)
  return %not "not"
}

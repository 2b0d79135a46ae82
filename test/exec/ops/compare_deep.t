# Comparisons of comparisons: each side is written once, however deep they stand.
# input x = bool[2] {0, 1}
# input y = bool[2] {1, 1}
# output z = bool[2] {0, 1}
graph (%x "x": bool[2], %y "y": bool[2]) {
  %a0: bool[2] = eq(%x, %y)
  %a1: bool[2] = eq(%a0, %y)
  %a2: bool[2] = eq(%a1, %y)
  %a3: bool[2] = eq(%a2, %y)
  %a4: bool[2] = eq(%a3, %y)
  %a5: bool[2] = eq(%a4, %y)
  %a6: bool[2] = eq(%a5, %y)
  %a7: bool[2] = eq(%a6, %y)
  %a8: bool[2] = eq(%a7, %y)
  %a9: bool[2] = eq(%a8, %y)
  %a10: bool[2] = eq(%a9, %y)
  %a11: bool[2] = eq(%a10, %y)
  %a12: bool[2] = eq(%a11, %y)
  %a13: bool[2] = eq(%a12, %y)
  %a14: bool[2] = eq(%a13, %y)
  %a15: bool[2] = eq(%a14, %y)
  %a16: bool[2] = eq(%a15, %y)
  %a17: bool[2] = eq(%a16, %y)
  %a18: bool[2] = eq(%a17, %y)
  %a19: bool[2] = eq(%a18, %y)
  %a20: bool[2] = eq(%a19, %y)
  %a21: bool[2] = eq(%a20, %y)
  %a22: bool[2] = eq(%a21, %y)
  %a23: bool[2] = eq(%a22, %y)
  %a24: bool[2] = eq(%a23, %y)
  %a25: bool[2] = eq(%a24, %y)
  %a26: bool[2] = eq(%a25, %y)
  %a27: bool[2] = eq(%a26, %y)
  %a28: bool[2] = eq(%a27, %y)
  %a29: bool[2] = eq(%a28, %y)
  return %a29 "z"
}

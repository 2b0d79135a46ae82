# Choice with all three operands broadcast.
# input p = bool[2,1] {true, false}
# input a = i64[3] {1, 2, 3}
# input b = i64[] {9}
# output y = i64[2,3] {1, 2, 3, 9, 9, 9}
graph (%p "p": bool[2,1], %a "a": i64[3], %b "b": i64[]) {
  %y: i64[2,3] = select(%p, %a, %b)
  return %y "y"
}

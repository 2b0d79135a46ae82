# Two results of one kernel, one of which nobody reads, do not both take the place of an operand.
# seed 301039, real
# input x0 = bool[] {true}
# input x6 = i32[3,0] {}
# input v4 = i64[1] {0}
graph
(%1 "x0": bool[], %2 "x6": i32[3,0], %3 "v4": i64[1]) {
  %4: i64[1] = slice(%3) {start=[0], step=[-1], size=[1]}
  %5: bool[], %6: i64[1] = if(%1) {
    %7: i64[1], %8: i64[1] = topk(%4) {axis=0, k=[1], largest=0}
    %9: i64[1] = add(%3, %8)
    return %1, %9
  } else {
    %10: i64[1] = slice(%3) {start=[0], step=[-1], size=[1]}
    return %1, %10
  }
  %11: i64[3,1] = gather_nd(%6, %2) {batch=0}
  %12: i64[1,1] = argmax(%11) {axis=0, keep=1, last=0}
  return %12 "y6"
}

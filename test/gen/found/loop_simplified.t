# simplify shows that the condition of a loop is the constant it began with: then its length is known.
# seed 1, exact
# input x2 = u16[] {24}
graph
sym u1 data in 0..0
(%1 "x2": u16[]) {
  %2: i64[] = const {0}
  %3: bool[] = const {true}
  %4: u16[], %5: bool[u1] = loop(%2, %3, %1) {scans=1} (%6: i64[], %7: bool[], %8: u16[]) {
    %9: bool[] = reshape(%3) {shape=[]}
    return %9, %8, %7
  } sym(u1)
  return %5 "y2"
}

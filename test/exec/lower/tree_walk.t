# A loop that moves every element on its own, with rows that take different ways. The last feature is never more than a limit.
# input x = f32[3,3] {0, 0, -inf, 1, -2, -inf, nan, nan, -inf}
# output y = i64[3,2] {1, 5, 2, 4, 2, 5}
graph sym n in 1..100 (%x "x": f32[n,3]) {
  %rounds: i64[] = const {3}
  %yes: bool[] = const {true}
  %roots: i64[2] = const {0, 3}
  %start: i64[n,2] = broadcast(%roots) {shape=[n,2]}
  %feature: i64[7] = const {0, 2, 2, 1, 2, 2, 0}
  %limit: f32[7] = const {0.5, inf, inf, -1, inf, inf, 0}
  %first: i64[7] = const {1, 1, 2, 4, 4, 5, 0}
  %end: i64[n,2] = loop(%rounds, %yes, %start) {scans=0} (%i: i64[], %c: bool[], %at: i64[n,2]) {
    %f: i64[n,2] = gather(%feature, %at) {axis=0}
    %v: f32[n,2] = gather_elems(%x, %f) {axis=1}
    %l: f32[n,2] = gather(%limit, %at) {axis=0}
    %less: bool[n,2] = le(%v, %l)
    %more: bool[n,2] = not(%less)
    %by: i64[n,2] = cast(%more) {to=i64}
    %to: i64[n,2] = gather(%first, %at) {axis=0}
    %next: i64[n,2] = add(%to, %by)
    return %c, %next
  }
  return %end "y"
}

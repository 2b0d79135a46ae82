# Loops that are no walks: one looks at another element, one at the counter, one may leave its table. The last is one that never comes to rest.
# input k = i64[3] {0, 1, 2}
# output other = i64[3] {1, 2, 0}
# output count = i64[3] {0, 2, 4}
# output out = i64[3] {9, 9, 9}
# output circle = i64[3] {1, 2, 0}
graph (%k "k": i64[3]) {
  %rounds: i64[] = const {4}
  %yes: bool[] = const {true}
  %turn: i64[3] = const {1, 2, 0}
  %up: i64[3] = const {1, 2, 9}
  %other: i64[3] = loop(%rounds, %yes, %k) {scans=0} (%i_a: i64[], %c_a: bool[], %at_a: i64[3]) {
    %next_a: i64[3] = gather(%at_a, %turn) {axis=0}
    return %c_a, %next_a
  }
  %count: i64[3] = loop(%rounds, %yes, %k) {scans=0} (%i_b: i64[], %c_b: bool[], %at_b: i64[3]) {
    %one_b: i64[] = const {1}
    %is_b: bool[] = eq(%i_b, %one_b)
    %two_b: i64[3] = add(%at_b, %at_b)
    %next_b: i64[3] = select(%is_b, %two_b, %at_b)
    return %c_b, %next_b
  }
  %out: i64[3] = loop(%rounds, %yes, %k) {scans=0} (%i_c: i64[], %c_c: bool[], %at_c: i64[3]) {
    %next_c: i64[3] = gather(%up, %at_c) {axis=0}
    return %c_c, %next_c
  }
  %circle: i64[3] = loop(%rounds, %yes, %k) {scans=0} (%i_d: i64[], %c_d: bool[], %at_d: i64[3]) {
    %next_d: i64[3] = gather(%turn, %at_d) {axis=0}
    return %c_d, %next_d
  }
  return %other "other", %count "count", %out "out", %circle "circle"
}

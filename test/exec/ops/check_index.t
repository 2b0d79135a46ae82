# Indices that are in range go through; sizes for all, or one for each element of the last axis.
# input i = i64[2,2] {0, -3, 2, 1}
# input j = i32[2,2] {0, 6, 2, -7}
# output a = i64[2,2] {0, -3, 2, 1}
# output b = i32[2,2] {0, 6, 2, -7}
graph (%i "i": i64[2,2], %j "j": i32[2,2]) {
  %a: i64[2,2] = check_index(%i) {size = [3]}
  %b: i32[2,2] = check_index(%j) {size = [3,7]}
  return %a "a", %b "b"
}

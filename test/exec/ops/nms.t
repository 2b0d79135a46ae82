# Boxes by falling score, ties by lower index; NaN is no score, and a box with such an edge overlaps none; -0 is 0.
# Three ways to give a box, limits below 0, fewer than there is room for.
# input s = f32[1,2,9] {0.5, 0.75, 0.5, 0.25, -0, 0, nan, 1, -inf, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}
# input b = f32[1,9,4] {0, 0, 4, 4, 0, 0, 4, 4, 4, 0, 0, 4, 0, 1, 4, 5, 10, 10, 14, 14, 10, 10, 14, 13, 2, 2, 2, 6, nan, 0, 4, 4, 0, 0, 2, 2}
# output a = i64[1,2,9] {7, 1, 4, -1, -1, -1, -1, -1, -1, 0, 4, 6, 7, 8, -1, -1, -1, -1}
# output c = i64[1,2,9] {7, 1, 4, -1, -1, -1, -1, -1, -1, 0, 4, 6, 7, -1, -1, -1, -1, -1}
# output d = i64[1,2,4] {7, 1, 2, -1, 0, 2, 4, 6}
# output e = i64[1,2,6] {7, 1, 2, 4, -1, -1, 0, 2, 4, 6, 7, 8}
# output f = i64[1,2,5] {7, 1, -1, -1, -1, 0, 3, -1, -1, -1}
# output g = i64[1,2,3] {-1, -1, -1, -1, -1, -1}
graph (%s "s": f32[1,2,9], %b "b": f32[1,9,4]) {
  %l0: f32[] = const {0.5}  %t0: f32[] = const {-1}  %m0: i64[] = const {9}
  %a: i64[1,2,9] = nms(%s, %b, %l0, %t0, %m0) {kind = "corners", k = [9]}
  %l1: f32[] = const {-1}  %t1: f32[] = const {-inf}  %m1: i64[] = const {9}
  %c: i64[1,2,9] = nms(%s, %b, %l1, %t1, %m1) {kind = "corners", k = [9]}
  %l2: f32[] = const {0.25}  %t2: f32[] = const {0}  %m2: i64[] = const {9}
  %d: i64[1,2,4] = nms(%s, %b, %l2, %t2, %m2) {kind = "edges", k = [4]}
  %l3: f32[] = const {0.5}  %t3: f32[] = const {-1}  %m3: i64[] = const {9}
  %e: i64[1,2,6] = nms(%s, %b, %l3, %t3, %m3) {kind = "centre", k = [6]}
  %l4: f32[] = const {0.9}  %t4: f32[] = const {-1}  %m4: i64[] = const {2}
  %f: i64[1,2,5] = nms(%s, %b, %l4, %t4, %m4) {kind = "corners", k = [5]}
  %l5: f32[] = const {0.5}  %t5: f32[] = const {0.6}  %m5: i64[] = const {-3}
  %g: i64[1,2,3] = nms(%s, %b, %l5, %t5, %m5) {kind = "edges", k = [3]}
  return %a "a", %c "c", %d "d", %e "e", %f "f", %g "g"
}

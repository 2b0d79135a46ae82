# Matrix products plain, transposed and batched, an outer and an inner product, a sum over one operand alone.
# input a = f32[2,3] {1, 2, 3, 4, 5, 6}
# input b = f32[3,4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
# input c = f32[2,3,2] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
# output mm = f32[2,4] {38, 44, 50, 56, 83, 98, 113, 128}
# output tt = f32[4,2] {38, 83, 44, 98, 50, 113, 56, 128}
# output bat = f32[2,2,2] {35, 44, 44, 56, 251, 278, 278, 308}
# output dot = f32[] {91}
# output out = f32[3,2,3,4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 6, 12, 18, 24, 30, 36, 42, 48, 54, 60, 66, 72}
# output one = f32[2] {468, 1170}
graph (%a "a": f32[2,3], %b "b": f32[3,4], %c "c": f32[2,3,2]) {
  %mm: f32[2,4] = contract(%a, %b) {spec = "mk,kn->mn"}
  %tt: f32[4,2] = contract(%a, %b) {spec = "mk,kn->nm"}
  %bat: f32[2,2,2] = contract(%c, %c) {spec = "bki,bkj->bij"}
  %dot: f32[] = contract(%a, %a) {spec = "xy,xy->"}
  %out: f32[3,2,3,4] = contract(%a, %b) {spec = "ij,pq->jipq"}
  %one: f32[2] = contract(%a, %b) {spec = "ij,pq->i"}
  return %mm "mm", %tt "tt", %bat "bat", %dot "dot", %out "out", %one "one"
}

# a product with constant blocks stays one; its other factor becomes bytes with a factor for each 32
# run: --start=unblock --stop=unblock
graph (%x: f32[2,3,32]) {
  %w: u8[2,1,18] = const {0, 60, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 56, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
  %f: f32[2,32] = unblock(%w) {kind="Q4_0"}
  %y: f32[2,3,2] = contract(%x, %f) {spec="abk,rk->abr"}
  return %y
}

# expect
graph
(%1: f32[2,3,32]) {
  %2: u8[2,1,18] = const {0, 60, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 56, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
  %3: f32[6,32] = reshape(%1) {shape=[6,32]}
  %4: f32[6,1,32] = reshape(%3) {shape=[6,1,32]}
  %5: f32[6,1,32] = abs(%4)
  %6: f32[6,1,1] = reduce_max(%5) {axes=[2], keep=1}
  %7: f32[] = const {0}
  %8: bool[6,1,1] = gt(%6, %7)
  %9: f32[] = const {127}
  %10: f32[6,1,1] = div(%9, %6)
  %11: f32[] = const {0}
  %12: f32[6,1,1] = select(%8, %10, %11)
  %13: f32[6,1,32] = mul(%4, %12)
  %14: f32[6,1,32] = round(%13)
  %15: i8[6,1,32] = cast(%14) {to=i8, sat=1}
  %16: f32[] = const {127}
  %17: f32[6,1,1] = div(%6, %16)
  %18: i32[6,1,32] = cast(%15) {to=i32}
  %19: i32[6,1] = reduce_sum(%18) {axes=[2], keep=0}
  %20: i8[6,32] = reshape(%15) {shape=[6,32]}
  %21: f32[6,1] = reshape(%17) {shape=[6,1]}
  %22: f32[6,2] = dot_blocks(%20, %2, %21, %19) {kind="Q4_0"}
  %23: f32[2,3,2] = reshape(%22) {shape=[2,3,2]}
  return %23
}

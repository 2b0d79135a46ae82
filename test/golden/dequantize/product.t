# a product with constant blocks stays one; its other factor becomes bytes with a factor for each 32
# run: --start=dequantize --stop=dequantize
graph (%x: f32[2,3,32]) {
  %w: u8[2,1,18] = const {0, 60, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 56, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
  %f: f32[2,32] = dequantize(%w) {kind="Q4_0"}
  %y: f32[2,3,2] = contract(%x, %f) {spec="abk,rk->abr"}
  return %y
}

# expect
ingot 2
graph
(%1: f32[2,3,32]) {
  %2: u8[2,1,18] = const {0, 60, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 56, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
  %3: f32[6,32] = reshape(%1) {shape=[6,32]}
  %4: f32[6,1,32] = reshape(%3) {shape=[6,1,32]}
  %5: f32[6,1,32] = abs(%4)
  %6: f32[6,1,1] = reduce_max(%5) {axes=[2], keep=1}
  %7: f32[] = const {inf}
  %8: bool[6,1,1] = lt(%6, %7)
  %9: f32[] = const {1.5046328e-36}
  %10: bool[6,1,1] = gt(%6, %9)
  %11: f32[] = const {127}
  %12: f32[6,1,1] = div(%11, %6)
  %13: f32[] = const {0}
  %14: f32[6,1,1] = select(%10, %12, %13)
  %15: f32[6,1,32] = mul(%4, %14)
  %16: f32[6,1,32] = round(%15)
  %17: i8[6,1,32] = cast(%16) {to=i8, sat=2}
  %18: f32[] = const {127}
  %19: f32[6,1,1] = div(%6, %18)
  %20: f32[] = const {nan}
  %21: f32[6,1,1] = select(%8, %19, %20)
  %22: i8[6,32] = reshape(%17) {shape=[6,32]}
  %23: f32[6,1] = reshape(%21) {shape=[6,1]}
  %24: i32[6,1,32] = cast(%17) {to=i32}
  %25: i32[6,1] = reduce_sum(%24) {axes=[2], keep=0}
  %26: f32[6,2] = matmul_quant(%22, %2, %23, %25) {kind="Q4_0"}
  %27: f32[2,3,2] = reshape(%26) {shape=[2,3,2]}
  return %27
}

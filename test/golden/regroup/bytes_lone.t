# single channels of bytes are made floats where they are stored, not at every place of a window, on machines that take several steps for it; the bytes themselves are never stored
# run: --start=regroup --stop=fuse --march sse2
graph (%x: f32[1,4,4,4]) {
  %w: i32[4,1,3,3] = const {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16, 17, -18, 19, -20, 21, -22, 23, -24, 25, -26, 27, -28, 29, -30, 31, -32, 33, -34, 35, -36}
  %b: i32[4,1,1] = const {1000, -1000, 500, 0}
  %z: i32[] = const {100}
  %t: f32[] = const {100}
  %s: f32[] = const {0.01}
  %r: f32[1,4,4,4] = round(%x)
  %m: f32[1,4,4,4] = add(%r, %t)
  %q: u8[1,4,4,4] = cast(%m) {to=u8, sat=1}
  %1: i32[1,4,4,4] = cast(%q) {to=i32}
  %2: i32[1,4,4,4] = sub(%1, %z)
  %3: i32[1,4,4,4] = conv(%2, %w) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %4: i32[1,4,4,4] = add(%3, %b)
  %5: f32[1,4,4,4] = cast(%4) {to=f32}
  %y: f32[1,4,4,4] = mul(%5, %s)
  return %y
}

# expect
ingot 2
graph
(%1: f32[1,4,4,4]) {
  %2: i32[] = const {100}
  %3: f32[] = const {100}
  %4: f32[] = const {0.01}
  %5: f32[1,4,4,4] inline = round(%1)
  %6: f32[1,4,4,4] inline = add(%5, %3)
  %7: u8[1,4,4,4] inline = cast(%6) {to=u8, sat=1}
  %8: i32[1,4,4,4] inline = cast(%7) {to=i32}
  %9: i32[1,4,4,4] inline = sub(%8, %2)
  %10: f32[1,4,4,4] inline = cast(%9) {to=f32}
  %11: f32[4,1,3,3] = const {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16, 17, -18, 19, -20, 21, -22, 23, -24, 25, -26, 27, -28, 29, -30, 31, -32, 33, -34, 35, -36}
  %12: f32[1,4,4,4] layout(4, [1,1], [1,1]) = broadcast(%10) {shape=[1,4,4,4]}
  %13: f32[1,4,4,4] epilogue layout(4, [0,0], [0,0]) = conv(%12, %11) {group=4, stride=[1,1], dilation=[1,1], pad_lo=[1,1], pad_hi=[1,1]}
  %14: f32[4,1,1] = const {1000, -1000, 500, 0}
  %15: f32[1,4,4,4] inline layout(4, [0,0], [0,0]) = add(%13, %14)
  %16: f32[1,4,4,4] layout(4, [0,0], [0,0]) = mul(%15, %4)
  %17: f32[1,4,4,4] = broadcast(%16) {shape=[1,4,4,4]}
  return %17
}

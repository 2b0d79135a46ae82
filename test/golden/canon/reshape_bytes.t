# a reshape goes behind maps, but not behind bytes as integers, of which it would make memory
# run: --start=canon --stop=canon
graph (%x: f32[1,2,4]) {
  %k: f32[] = const {3}
  %z: i32[] = const {9}
  %w: i32[1,2,2,2] = const {1, 2, 3, 4, 5, 6, 7, 8}
  %m: f32[1,2,4] = max(%x, %k)
  %r: f32[1,2,2,2] = reshape(%m) {shape=[1,2,2,2]}
  %o: f32[1,2,2,2] = round(%r)
  %q: u8[1,2,2,2] = cast(%o) {to=u8, sat=1}
  %i: i32[1,2,2,2] = cast(%q) {to=i32}
  %s: i32[1,2,2,2] = sub(%i, %z)
  %y: i32[1,1,1,1] = conv(%s, %w) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %y
}

# expect
ingot 2
graph
(%1: f32[1,2,4]) {
  %2: f32[] = const {3}
  %3: i32[] = const {9}
  %4: i32[1,2,2,2] = const {1, 2, 3, 4, 5, 6, 7, 8}
  %5: f32[1,2,4] = max(%1, %2)
  %6: f32[1,2,4] = round(%5)
  %7: u8[1,2,4] = cast(%6) {to=u8, sat=1}
  %8: u8[1,2,2,2] = reshape(%7) {shape=[1,2,2,2]}
  %9: i32[1,2,2,2] = cast(%8) {to=i32}
  %10: i32[1,2,2,2] = sub(%9, %3)
  %11: i32[1,1,1,1] = conv(%10, %4) {group=1, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  return %11
}

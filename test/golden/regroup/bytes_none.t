# bytes of a convolution without results stay what they are
# run: --start=regroup --stop=regroup --march sse2
graph
sym n in 1..4
(%x: u8[n,2,4,4]) {
  %w: i32[0,1,3,3] = const {}
  %1: i32[n,2,4,4] = cast(%x) {to=i32}
  %2: i32[n,0,2,2] = conv(%1, %w) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %3: f32[n,0,2,2] = cast(%2) {to=f32}
  return %3
}

# expect
ingot 2
graph
sym n in 1..4
(%1: u8[n,2,4,4]) {
  %2: i32[0,1,3,3] = const {}
  %3: i32[n,2,4,4] = cast(%1) {to=i32}
  %4: i32[n,0,2,2] = conv(%3, %2) {group=2, stride=[1,1], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}
  %5: f32[n,0,2,2] = cast(%4) {to=f32}
  return %5
}

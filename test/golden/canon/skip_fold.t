# canon leaves constants to fold; where that is left out, in every round, they stay as they are
# run: --start=canon --stop=canon --skip=fold
graph (%x: f32[1,1,3]) {
  %w: f32[1,1,2] = const {1, 2}
  %a: f32[1,1,1] = const {3}
  %k: f32[] = const {5}
  %c: f32[1,1,2] = conv(%x, %w) {group=1, stride=[1], dilation=[1], pad_lo=[0], pad_hi=[0]}
  %s: f32[1,1,2] = add(%c, %a)
  %y: f32[1,1,2] = mul(%s, %k)
  return %y
}

# expect
ingot 2
graph
(%1: f32[1,1,3]) {
  %2: f32[1,1,1] = const {3}
  %3: f32[] = const {5}
  %4: f32[1,1,1] = mul(%2, %3)
  %5: f32[1,1,2] = const {5, 10}
  %6: f32[1,1,2] = conv(%1, %5) {group=1, stride=[1], dilation=[1], pad_lo=[0], pad_hi=[0]}
  %7: f32[1,1,2] = add(%6, %4)
  return %7
}

# a row of a sum whose one operand has an open extent, here 1: it stretches, and is not cut
# input x = f32[1,2] {0.5, -1}
# input y = f32[4,2] {1, 2, 3, 4, 5, 6, 7, 8}
# output s = f32[1,2] {11.5, 15}
# output t = f32[4,1] {2, 6, 10, 14}
graph sym n in 1..4
(%x "x": f32[n,2], %y "y": f32[4,2]) {
  %w: f32[2,2] = const {1, 2, 1, 1}
  %c: f32[4,2] = contract(%y, %w) {spec="mk,kn->mn"}
  %a: f32[4,2] = add(%x, %c)
  %s: f32[1,2] = slice(%a) {start=[2,0], step=[1,1], size=[1,2]}
  %d: f32[4,2] = contract(%y, %w) {spec="mk,nk->mn"}
  %b: f32[4,2] = add(%x, %d)
  %t: f32[4,1] = slice(%b) {start=[0,1], step=[1,1], size=[4,1]}
  return %s "s", %t "t"
}

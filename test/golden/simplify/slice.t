# slices of slices and of joins
# run: --start=simplify --stop=simplify
graph
(%x: f32[10,4], %y: f32[3,4]) {
  %a: f32[8,4] = slice(%x) {start=[1,0], step=[1,1], size=[8,4]}
  %b: f32[4,2] = slice(%a) {start=[7,1], step=[-2,1], size=[4,2]}
  %c: f32[2,1] = slice(%b) {start=[1,1], step=[2,1], size=[2,1]}
  %d: f32[10,4] = slice(%x) {start=[0,0], step=[1,1], size=[10,4]}
  %e: f32[13,4] = concat(%d, %y) {axis=0}
  %f: f32[2,4] = slice(%e) {start=[11,0], step=[1,1], size=[2,4]}
  %g: f32[2,4] = slice(%e) {start=[9,0], step=[1,1], size=[2,4]}
  return %c, %f, %g
}

# expect
ingot 2
graph
(%1: f32[10,4], %2: f32[3,4]) {
  %3: f32[8,4] = slice(%1) {start=[1,0], step=[1,1], size=[8,4]}
  %4: f32[4,2] = slice(%1) {start=[8,1], step=[-2,1], size=[4,2]}
  %5: f32[2,1] = slice(%1) {start=[6,2], step=[-4,1], size=[2,1]}
  %6: f32[13,4] = concat(%1, %2) {axis=0}
  %7: f32[2,4] = slice(%2) {start=[1,0], step=[1,1], size=[2,4]}
  %8: f32[2,4] = slice(%6) {start=[9,0], step=[1,1], size=[2,4]}
  return %5, %7, %8
}

# pieces of one value, empty operands, a single operand
# run: --start=simplify --stop=simplify
graph
(%x: f32[2,5], %e: f32[2,0], %y: f32[2,1]) {
  %a: f32[2,2] = slice(%x) {start=[0,0], step=[1,1], size=[2,2]}
  %b: f32[2,3] = slice(%x) {start=[0,2], step=[1,1], size=[2,3]}
  %c: f32[2,5] = concat(%a, %b) {axis=1}
  %d: f32[2,5] = concat(%b, %a) {axis=1}
  %f: f32[2,6] = concat(%x, %e, %y) {axis=1}
  %g: f32[2,1] = concat(%y) {axis=1}
  %h: f32[2,1] = concat(%e, %y) {axis=1}
  return %c, %d, %f, %g, %h
}

# expect
ingot 2
graph
(%1: f32[2,5], %2: f32[2,0], %3: f32[2,1]) {
  %4: f32[2,2] = slice(%1) {start=[0,0], step=[1,1], size=[2,2]}
  %5: f32[2,3] = slice(%1) {start=[0,2], step=[1,1], size=[2,3]}
  %6: f32[2,5] = concat(%5, %4) {axis=1}
  %7: f32[2,6] = concat(%1, %3) {axis=1}
  return %1, %6, %7, %3, %3
}

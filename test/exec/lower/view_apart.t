# A view whose uses end in two groups, one of them computed on the way to the other.
# input x = f32[2,2] {1, 2, 3, 4}
# output y = f32[1,2] {1.25, 2.5}
graph (%x "x": f32[2,2]) {
  %s: f32[1,2] = slice(%x) {start = [0,0], step = [1,1], size = [1,2]}
  %k: f32[] = const {-0.25}
  %a: f32[1,2] = mul(%s, %k)
  %h: f32[] = const {0.75}
  %b: f32[1,2] = mul(%s, %h)
  %c: f32[1,2] = add(%a, %b)
  %y: f32[1,2] = add(%b, %c)
  return %y "y"
}

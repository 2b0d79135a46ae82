# The branches give different extents: the node sets a symbol. Both use values from outside.
# input p = bool[] {false}
# input x = f32[2,3] {1, 2, 3, 4, 5, 6}
# output y = f32[2,1] {2, 5}
# output z = f32[] {7}
# output d = i64[1] {1}
graph sym v data in 1..3 (%p "p": bool[], %x "x": f32[2,3]) {
  %y: f32[2,v] = if(%p) {
    %a: f32[2,3] = add(%x, %x)
    return %a
  } else {
    %b: f32[2,1] = slice(%x) {start = [0,1], step = [1,1], size = [2,1]}
    return %b
  } sym(v)
  %z: f32[] = reduce_sum(%y) {axes = [0,1], keep = 0}
  %d: i64[1] = dims {shape = [v], to = i64, rank = 1}
  return %y "y", %z "z", %d "d"
}

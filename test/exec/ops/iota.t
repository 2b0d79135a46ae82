# The index along one axis, in integers and floats.
# output a = i32[2,3] {0, 0, 0, 1, 1, 1}
# output b = f32[2,3] {0, 1, 2, 0, 1, 2}
graph () {
  %a: i32[2,3] = iota {shape = [2,3], axis = 0, to = i32}
  %b: f32[2,3] = iota {shape = [2,3], axis = 1, to = f32}
  return %a "a", %b "b"
}

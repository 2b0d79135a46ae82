# The bits of floats as integers and back.
# input x = f32[3] {1, -2.5, -0.0}
# input i = i64[1] {4607182418800017408}
# output u = u32[3] {1065353216, 3223322624, 2147483648}
# output y = f32[3] {1, -2.5, -0.0}
# output d = f64[1] {1}
graph (%x "x": f32[3], %i "i": i64[1]) {
  %u: u32[3] = bitcast(%x) {to = u32}
  %y: f32[3] = bitcast(%u) {to = f32}
  %d: f64[1] = bitcast(%i) {to = f64}
  return %u "u", %y "y", %d "d"
}

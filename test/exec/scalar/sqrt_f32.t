# Square root and reciprocal are rounded correctly.
# input a = f32[5] {1, 2, 3, 10, 0.25}
# output sqrt = f32[5] {1, 1.4142135381698608, 1.7320507764816284, 3.1622776985168457, 0.5}
# output recip = f32[5] {1, 0.5, 0.3333333432674408, 0.10000000149011612, 4}
graph (%a "a": f32[5]) {
  %sqrt: f32[5] = sqrt(%a)
  %recip: f32[5] = recip(%a)
  return %sqrt "sqrt", %recip "recip"
}

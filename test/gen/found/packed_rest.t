# The lanes end with a narrower vector: it is part of the panel of a packed operand, not of the first one.
# seed 1, exact
# target avx2
# input v2 = f32[12] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
graph
(%1 "v2": f32[12]) {
  %2: f32[12,2] = const {0, 2, -2, 0, -2, 0, -2, 2, -2, -1, 2, 2, 1, 0, 0, 1, 0, 0, 1, -2, 2, 1, -2, -2}
  %3: f32[2,12] = contract(%1, %2) {spec="a,ab->ba"}
  return %3 "y1"
}

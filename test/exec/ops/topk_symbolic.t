# k from a dimension of another input.
# input x = u64[4] {1, 18446744073709551615, 3, 2}
# input y = f32[2] {0}
# output a = u64[2] {18446744073709551615, 3}
# output i = i64[2] {1, 2}
graph sym n in 1..4 (%x "x": u64[4], %y "y": f32[n]) {
  %a: u64[n], %i: i64[n] = topk(%x) {axis = 0, k = [n], largest = 1}
  return %a "a", %i "i"
}

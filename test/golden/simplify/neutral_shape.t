# an operand that widens the result is not neutral
# run: --start=simplify --stop=simplify
graph
(%x: f32[2]) {
  %one: f32[3,1] = const {1, 1, 1}
  %a: f32[3,2] = mul(%x, %one)
  return %a
}

# expect
ingot 2
graph
(%1: f32[2]) {
  %2: f32[3,1] = const {1, 1, 1}
  %3: f32[3,2] = mul(%1, %2)
  return %3
}

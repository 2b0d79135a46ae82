# integer sums and products are left as they are
# run: --start=canon --stop=canon
graph
(%x: i32[3]) {
  %a: i32[] = const {3}
  %b: i32[] = const {4}
  %y: i32[3] = mul(%x, %a)
  %z: i32[3] = mul(%y, %b)
  return %z
}

# expect
ingot 2
graph
(%1: i32[3]) {
  %2: i32[] = const {3}
  %3: i32[] = const {4}
  %4: i32[3] = mul(%1, %2)
  %5: i32[3] = mul(%4, %3)
  return %5
}

# a reshape needs its operand in memory: it reads int8 instead of f32
# run: --start=canon --stop=canon
graph (%x: i8[4,6]) {
  %n: i8[4,6] = neg(%x)
  %f: f32[4,6] = cast(%n) {to=f32}
  %r: f32[4,2,3] = reshape(%f) {shape=[4,2,3]}
  %y: f32[4] = reduce_sum(%r) {axes=[1,2], keep=0}
  return %y
}

# expect
ingot 2
graph
(%1: i8[4,6]) {
  %2: i8[4,6] = neg(%1)
  %3: i8[4,2,3] = reshape(%2) {shape=[4,2,3]}
  %4: f32[4,2,3] = cast(%3) {to=f32}
  %5: f32[4] = reduce_sum(%4) {axes=[1,2], keep=0}
  return %5
}

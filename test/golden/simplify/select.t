# conditions that are known
# run: --start=simplify --stop=simplify
graph
(%x: f32[2], %y: f32[1], %c: bool[2]) {
  %t: bool[2] = const {true, true}
  %f: bool[] = const {false}
  %m: bool[2] = const {true, false}
  %a: f32[2] = select(%t, %x, %y)
  %b: f32[2] = select(%f, %x, %y)
  %d: f32[2] = select(%m, %x, %y)
  %e: f32[2] = select(%c, %x, %x)
  return %a, %b, %d, %e
}

# expect
ingot 2
graph
(%1: f32[2], %2: f32[1], %3: bool[2]) {
  %4: bool[2] = const {true, true}
  %5: bool[] = const {false}
  %6: bool[2] = const {true, false}
  %7: f32[2] = broadcast(%2) {shape=[2]}
  %8: f32[2] = select(%6, %1, %2)
  return %1, %7, %8, %1
}

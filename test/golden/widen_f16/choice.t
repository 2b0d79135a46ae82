# a comparison and a choice are made in f32, which is exact; bool stays bool
# run: --march avx2 --start=widen_f16 --stop=widen_f16
graph choice
(%1 "a": f16[4], %2 "b": f16[4]) {
  %3: bool[4] = lt(%1, %2)
  %4: f16[4] = select(%3, %1, %2)
  return %3 "less", %4 "y"
}

# expect
ingot 2
graph choice
(%1 "a": f16[4], %2 "b": f16[4]) {
  %3: f32[4] = cast(%1) {to=f32}
  %4: f32[4] = cast(%2) {to=f32}
  %5: bool[4] = lt(%3, %4)
  %6: f32[4] = select(%5, %3, %4)
  %7: f16[4] = cast(%6) {to=f16}
  return %5 "less", %7 "y"
}

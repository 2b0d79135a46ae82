# elements that are only moved stay as they lie in memory: a table is gathered as halves
# run: --march avx2 --start=widen_f16 --stop=widen_f16
graph table
(%1 "i": i64[3], %2 "t": f16[10,4]) {
  %3: f16[3,4] = gather(%2, %1) {axis=0}
  %4: f16[4,3] = transpose(%3) {perm=[1,0]}
  %5: f16[4,3] = mul(%4, %4)
  return %5 "y"
}

# expect
ingot 2
graph table
(%1 "i": i64[3], %2 "t": f16[10,4]) {
  %3: f16[3,4] = gather(%2, %1) {axis=0}
  %4: f16[4,3] = transpose(%3) {perm=[1,0]}
  %5: f32[4,3] = cast(%4) {to=f32}
  %6: f32[4,3] = mul(%5, %5)
  %7: f16[4,3] = cast(%6) {to=f16}
  return %7 "y"
}

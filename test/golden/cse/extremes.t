# max gives the first of two zeros, so its operands do not change places; those of add do
# run: --start=cse --stop=cse
graph extremes
(%1 "x": f32[4], %2 "z": f32[4]) {
  %3: f32[4] = max(%1, %2)
  %4: f32[4] = max(%2, %1)
  %5: f32[4] = add(%1, %2)
  %6: f32[4] = add(%2, %1)
  return %3 "a", %4 "b", %5 "c", %6 "d"
}

# expect
ingot 2
graph extremes
(%1 "x": f32[4], %2 "z": f32[4]) {
  %3: f32[4] = max(%1, %2)
  %4: f32[4] = max(%2, %1)
  %5: f32[4] = add(%1, %2)
  return %3 "a", %4 "b", %5 "c", %5 "d"
}

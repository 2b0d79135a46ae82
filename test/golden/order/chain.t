# Nothing to gain: the order stays as it is.
# run: --start=order --stop=order
graph (%x "x": f32[16]) {
  %c: f32[] = const {2}
  %a: f32[16] = mul(%x, %c)
  %b: f32[16] = exp(%x)
  %d: f32[16] = add(%a, %b)
  %e: f32[16] = neg(%a)
  %f: f32[16] = add(%d, %e)
  return %f "y"
}

# expect
ingot 2
graph
(%1 "x": f32[16]) {
  %2: f32[] = const {2}
  %3: f32[16] = mul(%1, %2)
  %4: f32[16] = exp(%1)
  %5: f32[16] = add(%3, %4)
  %6: f32[16] = neg(%3)
  %7: f32[16] = add(%5, %6)
  return %7 "y"
}

# what depends on constants only is computed
# run: --start=fold --stop=fold
graph
(%x: f32[2]) {
  %a: f32[2] = const {1, 2}
  %b: f32[] = const {0.5}
  %s: f32[2] = mul(%a, %b)
  %t: f32[2] = exp(%s)
  %u: f32[2] = sub(%s, %s)
  %r: f32[2] = add(%x, %u)
  return %r, %t
}

# expect
ingot 2
graph
(%1: f32[2]) {
  %2: f32[2] = const {1, 2}
  %3: f32[] = const {0.5}
  %4: f32[2] = const {0.5, 1}
  %5: f32[2] = const {1.6487212, 2.7182817}
  %6: f32[2] = const {0, 0}
  %7: f32[2] = add(%1, %6)
  return %7, %5
}

# a sum with its bias, used twice by its activation, is finished in one group; one that two results need is not
# run: --start=fuse --stop=fuse
graph
(%x: f32[4,8], %w: f32[8,3], %b: f32[3], %z: f32[3,3]) {
  %one: f32[] = const {1}
  %p: f32[4,3] = contract(%x, %w) {spec="mk,kn->mn"}
  %a: f32[4,3] = add(%p, %b)
  %n: f32[4,3] = neg(%a)
  %e: f32[4,3] = exp(%n)
  %d: f32[4,3] = add(%e, %one)
  %y: f32[4,3] = div(%a, %d)
  %q: f32[4,3] = contract(%y, %z) {spec="mk,kn->mn"}
  %r: f32[4,3] = tanh(%q)
  %s: f32[4,3] = neg(%q)
  %t: f32[4,3] = contract(%y, %z) {spec="mk,kn->mn"}
  %u: f32[4,3] = exp(%t)
  %v: f32[4,3] = mul(%u, %u)
  return %r, %s, %v
}

# expect
ingot 2
graph
(%1: f32[4,8], %2: f32[8,3], %3: f32[3], %4: f32[3,3]) {
  %5: f32[] = const {1}
  %6: f32[4,3] epilogue = contract(%1, %2) {spec="mk,kn->mn"}
  %7: f32[4,3] inline = add(%6, %3)
  %8: f32[4,3] inline = neg(%7)
  %9: f32[4,3] inline = exp(%8)
  %10: f32[4,3] inline = add(%9, %5)
  %11: f32[4,3] = div(%7, %10)
  %12: f32[4,3] = contract(%11, %4) {spec="mk,kn->mn"}
  %13: f32[4,3] = tanh(%12)
  %14: f32[4,3] = neg(%12)
  %15: f32[4,3] epilogue = contract(%11, %4) {spec="mk,kn->mn"}
  %16: f32[4,3] = exp(%15)
  %17: f32[4,3] = mul(%16, %16)
  return %13, %14, %17
}

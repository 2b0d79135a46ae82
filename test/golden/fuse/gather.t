# rows of a table are gathered where they are used; single numbers and what is searched are not
# run: --start=fuse --stop=fuse
graph
(%i: i64[4], %e: f32[9,8], %n: f32[9]) {
  %a: f32[4,8] = gather(%e, %i) {axis=0}
  %b: f32[4,8] = exp(%a)
  %c: f32[4] = gather(%n, %i) {axis=0}
  %d: f32[4] = exp(%c)
  %f: f32[4,8] = gather(%e, %i) {axis=0}
  %g: i64[4] = argmax(%f) {axis=1, keep=0, last=0}
  return %b, %d, %g
}

# expect
ingot 2
graph
(%1: i64[4], %2: f32[9,8], %3: f32[9]) {
  %4: f32[4,8] inline = gather(%2, %1) {axis=0}
  %5: f32[4,8] = exp(%4)
  %6: f32[4] = gather(%3, %1) {axis=0}
  %7: f32[4] = exp(%6)
  %8: f32[4,8] = gather(%2, %1) {axis=0}
  %9: i64[4] = argmax(%8) {axis=1, keep=0, last=0}
  return %5, %7, %9
}

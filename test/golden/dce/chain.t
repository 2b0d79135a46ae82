# what no result needs goes; parameters stay
# run: --start=dce --stop=dce
graph
(%x: f32[2], %unused: f32[3]) {
  %a: f32[2] = exp(%x)
  %b: f32[2] = neg(%a)
  %c: f32[2] = sqrt(%x)
  %d: f32[2] = add(%b, %c)
  return %c
}

# expect
ingot 2
graph
(%1: f32[2], %2: f32[3]) {
  %3: f32[2] = sqrt(%1)
  return %3
}

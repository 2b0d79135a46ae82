# operations that undo or repeat each other
# run: --start=simplify --stop=simplify
graph
(%x: f32[2], %b: bool[2]) {
  %a: f32[2] = neg(%x)
  %c: f32[2] = neg(%a)
  %d: bool[2] = not(%b)
  %e: bool[2] = not(%d)
  %f: f32[2] = floor(%x)
  %g: f32[2] = round(%f)
  %h: f32[2] = abs(%a)
  %i: f32[2] = abs(%h)
  %j: bool[2] = eq(%x, %c)
  %k: bool[2] = not(%j)
  %l: f32[2] = max(%c, %x)
  return %c, %e, %g, %i, %k, %l
}

# expect
graph
(%1: f32[2], %2: bool[2]) {
  %3: f32[2] = neg(%1)
  %4: bool[2] = not(%2)
  %5: f32[2] = floor(%1)
  %6: f32[2] = abs(%1)
  %7: bool[2] = eq(%1, %1)
  %8: bool[2] = ne(%1, %1)
  return %1, %2, %5, %6, %8, %1
}

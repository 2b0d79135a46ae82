# operations that undo or repeat each other
# run: --start=simplify --stop=simplify
graph
(%x: f32[2], %b: bool[2], %u: u8[2]) {
  %p: u8[2] = neg(%u)
  %q: u8[2] = abs(%p)
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
  return %c, %e, %g, %i, %k, %l, %q
}

# expect
ingot 2
graph
(%1: f32[2], %2: bool[2], %3: u8[2]) {
  %4: u8[2] = neg(%3)
  %5: u8[2] = abs(%4)
  %6: f32[2] = neg(%1)
  %7: bool[2] = not(%2)
  %8: f32[2] = floor(%1)
  %9: f32[2] = abs(%1)
  %10: bool[2] = eq(%1, %1)
  %11: bool[2] = ne(%1, %1)
  return %1, %2, %8, %9, %11, %1, %5
}

# neutral operands vanish, except +0 in a float sum
# run: --start=simplify --stop=simplify
graph
(%x: f32[2], %i: i32[2], %b: bool[2]) {
  %one: f32[] = const {1}
  %zero: f32[] = const {0}
  %minus: f32[2] = const {-0, -0}
  %inf: f32[] = const {-inf}
  %i0: i32[] = const {0}
  %i1: i32[1] = const {1}
  %m1: i32[] = const {-1}
  %t: bool[] = const {true}
  %a: f32[2] = mul(%one, %x)
  %c: f32[2] = div(%a, %one)
  %d: f32[2] = add(%c, %minus)
  %e: f32[2] = sub(%d, %zero)
  %f: f32[2] = pow(%e, %one)
  %g: f32[2] = max(%f, %inf)
  %h: f32[2] = add(%g, %zero)
  %j: i32[2] = add(%i, %i0)
  %k: i32[2] = mul(%j, %i1)
  %l: i32[2] = and(%k, %m1)
  %m: i32[2] = xor(%i0, %l)
  %n: bool[2] = and(%b, %t)
  return %h, %m, %n
}

# expect
ingot 2
graph
(%1: f32[2], %2: i32[2], %3: bool[2]) {
  %4: f32[] = const {1}
  %5: f32[] = const {0}
  %6: f32[2] = const {-0, -0}
  %7: f32[] = const {-inf}
  %8: i32[] = const {0}
  %9: i32[1] = const {1}
  %10: i32[] = const {-1}
  %11: bool[] = const {true}
  %12: f32[2] = add(%1, %5)
  return %12, %2, %3
}

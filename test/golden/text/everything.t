# every part of the syntax, printed canonically
# run: --stop=none
graph "a \"quoted\" name"
sym batch in 1..64
sym "sequence length" in 0..
sym u0 data in 0..64
(%image "image": f32[batch,"sequence length"], %list: seq(f32[batch]), %maybe: opt(i64[]), %c: bool[]) {
  # comments vanish; values are numbered in order
  %a "line\nbreak": f32[2,3] = const {0.5, -1, 0x1.8p-3, nan, inf, -inf}
  %b: f32[2] = const {bits(7fc00001), -0}
  %d: f64[3] = const {0.1, 1e300, 0.30000000000000004}
  %e: f16[3] = const {0.1, 65504, 6e-8}
  %f: bf16[2] = const {1, 3.14}
  %g: u64[2] = const {18446744073709551615, 0}
  %h: i64[2] = const {-9223372036854775808, 9223372036854775807}
  %i: i4[3] = const {-8, 7, 0}
  %j: bool[2] = const {true, false}
  %k: str[2] = const {"plain", "\xff\"\\"}
  %l: c64[1] = const {(1, -0.5)}
  %m: f32[0,4] = const {}
  %n: f32[] = const {3}
  %o "z": i64[2,u0] = nonzero(%image) sym(u0) @("NonZero", "nz", 12)
  %p: i64[3] = dims {rank=1, to=i64, shape=[batch, 2*u0+1, ("sequence length"+1)/2]}
  %q: f32[] = if(%c) {
    return %n
  } else {
    %t: f32[] = neg(%n) @("Neg", "", -1)
    return %t
  }
  return %q "out", %p "shape", %o
}

# expect
ingot 2
graph "a \"quoted\" name"
sym batch in 1..64
sym "sequence length" in 0..
sym u0 data in 0..64
(%1 "image": f32[batch,"sequence length"], %2: seq(f32[batch]), %3: opt(i64[]), %4: bool[]) {
  %5 "line\nbreak": f32[2,3] = const {0.5, -1, 0.1875, nan, inf, -inf}
  %6: f32[2] = const {bits(7fc00001), -0}
  %7: f64[3] = const {0.1, 1e+300, 0.30000000000000004}
  %8: f16[3] = const {0.1, 65504, 5.96e-08}
  %9: bf16[2] = const {1, 3.14}
  %10: u64[2] = const {18446744073709551615, 0}
  %11: i64[2] = const {-9223372036854775808, 9223372036854775807}
  %12: i4[3] = const {-8, 7, 0}
  %13: bool[2] = const {true, false}
  %14: str[2] = const {"plain", "\xff\"\\"}
  %15: c64[1] = const {(1, -0.5)}
  %16: f32[0,4] = const {}
  %17: f32[] = const {3}
  %18 "z": i64[2,u0] = nonzero(%1) sym(u0) @("NonZero", "nz", 12)
  %19: i64[3] = dims {shape=[batch,2*u0+1,("sequence length"+1)/2], to=i64, rank=1}
  %20: f32[] = if(%4) {
    return %17
  } else {
    %21: f32[] = neg(%17) @("Neg", "", -1)
    return %21
  }
  return %20 "out", %19 "shape", %18
}

# a loop takes values from outside its operands, and a slice may start at an open place: neither is a constant
# run: --start=quant --stop=quant
graph sym n in 1..5 (%x: f32[2], %m: f32[n]) {
  %three: i64[] = const {3}
  %go: bool[] = const {true}
  %c: f32[2] = const {1, 2}
  %s: f32[] = const {0.5}
  %w: f32[9] = const {1, 2, 3, 4, 5, 6, 7, 8, 9}
  %v: f32[2] = loop(%three, %go, %c) {scans=0} (%i: i64[], %k: bool[], %a: f32[2]) {
    %b: f32[2] = mul(%a, %x)
    return %k, %b
  }
  %d: f32[2] = div(%v, %s)
  %r: f32[2] = round(%d)
  %q: i8[2] = cast(%r) {to=i8, sat=1}
  %p: f32[4] = slice(%w) {start=[n], step=[1], size=[4]}
  %pd: f32[4] = div(%p, %s)
  %pr: f32[4] = round(%pd)
  %pq: i8[4] = cast(%pr) {to=i8, sat=1}
  %qi: i32[2] = cast(%q) {to=i32}
  %qf: f32[2] = cast(%qi) {to=f32}
  %y: f32[2] = mul(%qf, %s)
  return %y, %pq
}

# expect
ingot 2
graph
sym n in 1..5
(%1: f32[2], %2: f32[n]) {
  %3: i64[] = const {3}
  %4: bool[] = const {true}
  %5: f32[2] = const {1, 2}
  %6: f32[] = const {0.5}
  %7: f32[9] = const {1, 2, 3, 4, 5, 6, 7, 8, 9}
  %8: f32[2] = loop(%3, %4, %5) {scans=0} (%9: i64[], %10: bool[], %11: f32[2]) {
    %12: f32[2] = mul(%11, %1)
    return %10, %12
  }
  %13: f32[2] = div(%8, %6)
  %14: f32[2] = round(%13)
  %15: i8[2] = cast(%14) {to=i8, sat=1}
  %16: f32[4] = slice(%7) {start=[n], step=[1], size=[4]}
  %17: f32[4] = div(%16, %6)
  %18: f32[4] = round(%17)
  %19: i8[4] = cast(%18) {to=i8, sat=1}
  %20: i32[2] = cast(%15) {to=i32}
  %21: f32[2] = cast(%20) {to=f32}
  %22: f32[2] = mul(%21, %6)
  return %22, %19
}

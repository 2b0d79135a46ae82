# the branch that is not the epilogue is stored as int8, not as the i32 operand of the sum
# run: --start=fuse --stop=fuse
graph (%x: i8[4,16], %a: i8[16,8], %b: i8[16,8]) {
  %wx: i32[4,16] = cast(%x) {to=i32}
  %wa: i32[16,8] = cast(%a) {to=i32}
  %wb: i32[16,8] = cast(%b) {to=i32}
  %one: i32[] = const {1}
  %p: i32[4,8] = contract(%wx, %wa) {spec="mk,kn->mn"}
  %q: i32[4,8] = contract(%wx, %wb) {spec="mk,kn->mn"}
  %pn: i8[4,8] = cast(%p) {to=i8, sat=1}
  %qn: i8[4,8] = cast(%q) {to=i8, sat=1}
  %pw: i32[4,8] = cast(%pn) {to=i32}
  %qw: i32[4,8] = cast(%qn) {to=i32}
  %ps: i32[4,8] = shl(%pw, %one)
  %qs: i32[4,8] = shl(%qw, %one)
  %y: i32[4,8] = add(%ps, %qs)
  return %y
}

# expect
ingot 2
graph
(%1: i8[4,16], %2: i8[16,8], %3: i8[16,8]) {
  %4: i32[4,16] inline = cast(%1) {to=i32}
  %5: i32[16,8] inline = cast(%2) {to=i32}
  %6: i32[16,8] inline = cast(%3) {to=i32}
  %7: i32[] = const {1}
  %8: i32[4,8] epilogue = contract(%4, %5) {spec="mk,kn->mn"}
  %9: i32[4,8] epilogue = contract(%4, %6) {spec="mk,kn->mn"}
  %10: i8[4,8] inline = cast(%8) {to=i8, sat=1}
  %11: i8[4,8] = cast(%9) {to=i8, sat=1}
  %12: i32[4,8] inline = cast(%10) {to=i32}
  %13: i32[4,8] inline = cast(%11) {to=i32}
  %14: i32[4,8] inline = shl(%12, %7)
  %15: i32[4,8] inline = shl(%13, %7)
  %16: i32[4,8] = add(%14, %15)
  return %16
}

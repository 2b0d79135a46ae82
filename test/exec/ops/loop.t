# Fibonacci by two carried values that change places, with a scan of the counter; a count known beforehand.
# output x = i64[] {8}
# output y = i64[] {13}
# output s = i64[6] {0, 1, 2, 3, 4, 5}
graph () {
  %n: i64[] = const {6}
  %t: bool[] = const {true}
  %a: i64[] = const {0}
  %b: i64[] = const {1}
  %x: i64[], %y: i64[], %s: i64[6] = loop(%n, %t, %a, %b) {scans = 1} (%i: i64[], %c: bool[], %p: i64[], %q: i64[]) {
    %r: i64[] = add(%p, %q)
    return %c, %q, %r, %i
  }
  return %x "x", %y "y", %s "s"
}

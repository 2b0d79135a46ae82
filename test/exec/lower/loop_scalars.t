# What turns carry as single elements: swapped, set in one branch only, counted by an inner loop; results that are carried too.
# input x = f64[] {1}
# input y = f64[] {3}
# input n = i64[] {6}
# output a = f64[] {0.25146484375}
# output b = f64[] {0.19065284729003906}
# output k = i64[] {45}
# output f = f32[1] {1.125}
graph (%x0 "x": f64[], %y0 "y": f64[], %n "n": i64[]) {
  %t: bool[] = const {true}
  %zero: i64[] = const {0}
  %one: i64[] = const {1}
  %two: i64[] = const {2}
  %three: i64[] = const {3}
  %half: f32[1] = const {0.5}
  %start: f32[1] = const {2}
  %a: f64[], %b: f64[], %k: i64[], %f: f32[1] = loop(%n, %t, %x0, %y0, %zero, %start) {scans = 0} (%i: i64[], %c: bool[], %x: f64[], %y: f64[], %s: i64[], %g: f32[1]) {
    %p: f64[] = mul(%x, %y)
    %q: f64[] = add(%p, %x)
    %odd: i64[] = mod(%i, %two)
    %is: bool[] = eq(%odd, %one)
    %m: f32[1] = if(%is) {
      %h: f32[1] = mul(%g, %half)
      %u: f32[1] = add(%h, %half)
      return %u
    } else {
      return %g
    }
    %r: i64[] = loop(%three, %t, %s) {scans = 0} (%j: i64[], %d: bool[], %v: i64[]) {
      %o: i64[] = mul(%i, %j)
      %w: i64[] = add(%v, %o)
      return %d, %w
    }
    %e: f64[] = const {0.25}
    %z: f64[] = mul(%q, %e)
    return %t, %y, %z, %r, %m
  }
  return %a "a", %b "b", %k "k", %f "f"
}

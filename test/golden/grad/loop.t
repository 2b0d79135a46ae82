# what a turn read is kept by the loop, rows that turns gather get what they are due behind it
# run: --grad y:x,s,w --stop=none
graph (%x "x": f32[2], %s "s": f32[3,2], %w "w": f32[2]) {
  %n: i64[] = const {3}
  %t: bool[] = const {true}
  %y: f32[2] = loop(%n, %t, %x) {scans = 0} (%i: i64[], %c: bool[], %h: f32[2]) {
    %g: f32[2] = gather(%s, %i) {axis = 0}
    %m: f32[2] = mul(%h, %w)
    %a: f32[2] = add(%m, %g)
    %b: f32[2] = tanh(%a)
    return %c, %b
  }
  return %y "y"
}

# expect
ingot 2
graph
(%1 "x": f32[2], %2 "s": f32[3,2], %3 "w": f32[2]) {
  %4: i64[] = const {3}
  %5: bool[] = const {true}
  %6: f32[2], %7: f32[3,2], %8: f32[3,2] = loop(%4, %5, %1) {scans=2} (%9: i64[], %10: bool[], %11: f32[2]) {
    %12: f32[2] = gather(%2, %9) {axis=0}
    %13: f32[2] = mul(%11, %3)
    %14: f32[2] = add(%13, %12)
    %15: f32[2] = tanh(%14)
    return %10, %15, %11, %15
  }
  %16: f32[] = const {1}
  %17: f32[2] = broadcast(%16) {shape=[2]}
  %18: i64[] = const {1}
  %19: i64[] = sub(%4, %18)
  %20: bool[] = const {true}
  %21: f32[] = const {0}
  %22: f32[2] = broadcast(%21) {shape=[2]}
  %23: f32[2], %24: f32[2], %25: i64[3], %26: f32[3,2] = loop(%4, %20, %17, %22) {scans=2} (%27: i64[], %28: bool[], %29: f32[2], %30: f32[2]) {
    %31: i64[] = sub(%19, %27)
    %32: f32[2] = gather(%7, %31) {axis=0}
    %33: f32[2] = gather(%8, %31) {axis=0}
    %34: f32[2] = mul(%33, %33)
    %35: f32[] = const {1}
    %36: f32[2] = sub(%35, %34)
    %37: f32[2] = mul(%29, %36)
    %38: f32[2] = mul(%37, %3)
    %39: f32[2] = mul(%37, %32)
    %40: f32[2] = add(%30, %39)
    return %28, %38, %40, %31, %37
  }
  %41: f32[] = const {0}
  %42: f32[3,2] = broadcast(%41) {shape=[3,2]}
  %43: i64[] = const {3}
  %44: i64[] = neg(%43)
  %45: i64[3] = max(%25, %44)
  %46: i64[] = const {1}
  %47: i64[] = sub(%43, %46)
  %48: i64[3] = min(%45, %47)
  %49: i64[3,1] = reshape(%48) {shape=[3,1]}
  %50: f32[3,2] = scatter_nd(%42, %49, %26) {reduce="add"}
  return %6 "y", %23 "x.grad", %50 "s.grad", %24 "w.grad"
}

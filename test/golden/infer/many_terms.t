# an extent may be the sum of many open ones, as where results of 40 classes are joined
# run: --start=infer --stop=infer
graph
sym n0 in 1..
sym n1 in 1..
sym n2 in 1..
sym n3 in 1..
sym n4 in 1..
sym n5 in 1..
sym n6 in 1..
sym n7 in 1..
sym n8 in 1..
sym n9 in 1..
sym n10 in 1..
sym n11 in 1..
sym n12 in 1..
sym n13 in 1..
sym n14 in 1..
sym n15 in 1..
sym n16 in 1..
sym n17 in 1..
sym n18 in 1..
sym n19 in 1..
sym n20 in 1..
sym n21 in 1..
sym n22 in 1..
sym n23 in 1..
sym n24 in 1..
sym n25 in 1..
sym n26 in 1..
sym n27 in 1..
sym n28 in 1..
sym n29 in 1..
sym n30 in 1..
sym n31 in 1..
sym n32 in 1..
sym n33 in 1..
sym n34 in 1..
sym n35 in 1..
sym n36 in 1..
sym n37 in 1..
sym n38 in 1..
sym n39 in 1..
(%x0: f32[n0], %x1: f32[n1], %x2: f32[n2], %x3: f32[n3], %x4: f32[n4], %x5: f32[n5], %x6: f32[n6], %x7: f32[n7], %x8: f32[n8], %x9: f32[n9], %x10: f32[n10], %x11: f32[n11], %x12: f32[n12], %x13: f32[n13], %x14: f32[n14], %x15: f32[n15], %x16: f32[n16], %x17: f32[n17], %x18: f32[n18], %x19: f32[n19], %x20: f32[n20], %x21: f32[n21], %x22: f32[n22], %x23: f32[n23], %x24: f32[n24], %x25: f32[n25], %x26: f32[n26], %x27: f32[n27], %x28: f32[n28], %x29: f32[n29], %x30: f32[n30], %x31: f32[n31], %x32: f32[n32], %x33: f32[n33], %x34: f32[n34], %x35: f32[n35], %x36: f32[n36], %x37: f32[n37], %x38: f32[n38], %x39: f32[n39]) {
  %y: f32[n0+n1+n2+n3+n4+n5+n6+n7+n8+n9+n10+n11+n12+n13+n14+n15+n16+n17+n18+n19+n20+n21+n22+n23+n24+n25+n26+n27+n28+n29+n30+n31+n32+n33+n34+n35+n36+n37+n38+n39] = concat(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7, %x8, %x9, %x10, %x11, %x12, %x13, %x14, %x15, %x16, %x17, %x18, %x19, %x20, %x21, %x22, %x23, %x24, %x25, %x26, %x27, %x28, %x29, %x30, %x31, %x32, %x33, %x34, %x35, %x36, %x37, %x38, %x39) {axis=0}
  return %y
}

# expect
ingot 2
graph
sym n0 in 1..
sym n1 in 1..
sym n2 in 1..
sym n3 in 1..
sym n4 in 1..
sym n5 in 1..
sym n6 in 1..
sym n7 in 1..
sym n8 in 1..
sym n9 in 1..
sym n10 in 1..
sym n11 in 1..
sym n12 in 1..
sym n13 in 1..
sym n14 in 1..
sym n15 in 1..
sym n16 in 1..
sym n17 in 1..
sym n18 in 1..
sym n19 in 1..
sym n20 in 1..
sym n21 in 1..
sym n22 in 1..
sym n23 in 1..
sym n24 in 1..
sym n25 in 1..
sym n26 in 1..
sym n27 in 1..
sym n28 in 1..
sym n29 in 1..
sym n30 in 1..
sym n31 in 1..
sym n32 in 1..
sym n33 in 1..
sym n34 in 1..
sym n35 in 1..
sym n36 in 1..
sym n37 in 1..
sym n38 in 1..
sym n39 in 1..
(%1: f32[n0], %2: f32[n1], %3: f32[n2], %4: f32[n3], %5: f32[n4], %6: f32[n5], %7: f32[n6], %8: f32[n7], %9: f32[n8], %10: f32[n9], %11: f32[n10], %12: f32[n11], %13: f32[n12], %14: f32[n13], %15: f32[n14], %16: f32[n15], %17: f32[n16], %18: f32[n17], %19: f32[n18], %20: f32[n19], %21: f32[n20], %22: f32[n21], %23: f32[n22], %24: f32[n23], %25: f32[n24], %26: f32[n25], %27: f32[n26], %28: f32[n27], %29: f32[n28], %30: f32[n29], %31: f32[n30], %32: f32[n31], %33: f32[n32], %34: f32[n33], %35: f32[n34], %36: f32[n35], %37: f32[n36], %38: f32[n37], %39: f32[n38], %40: f32[n39]) {
  %41: f32[n0+n1+n10+n11+n12+n13+n14+n15+n16+n17+n18+n19+n2+n20+n21+n22+n23+n24+n25+n26+n27+n28+n29+n3+n30+n31+n32+n33+n34+n35+n36+n37+n38+n39+n4+n5+n6+n7+n8+n9] = concat(%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40) {axis=0}
  return %41
}

# Sums of products of integers wrap to the type; an empty sum is 0; a symbolic extent.
# input a = i8[1,2] {100, 100}
# input x = i32[2,3] {1, 2, 3, 4, 5, 6}
# input e = f32[2,0] {}
# output w = i8[1,1] {32}
# output y = i32[2,2] {14, 32, 32, 77}
# output z = f32[2,2] {0, 0, 0, 0}
graph sym n in 1..4 (%a "a": i8[1,2], %x "x": i32[n,3], %e "e": f32[2,0]) {
  %w: i8[1,1] = contract(%a, %a) {spec = "mk,nk->mn"}
  %y: i32[n,n] = contract(%x, %x) {spec = "mk,nk->mn"}
  %z: f32[2,2] = contract(%e, %e) {spec = "mk,nk->mn"}
  return %w "w", %y "y", %z "z"
}

# The dimensions of an input as numbers, with arithmetic on them. C is refused: a size has no bound.
# engines: ref interp
# input x = f32[2,3] {0}
# output d = i64[4] {2, 3, 6, 1}
# output s = i32[] {3}
graph sym n in 1..8 sym m in 0.. (%x "x": f32[n,m]) {
  %d: i64[4] = dims {shape = [n,m,n*m,m/2], to = i64, rank = 1}
  %s: i32[] = dims {shape = [n+1], to = i32, rank = 0}
  return %d "d", %s "s"
}

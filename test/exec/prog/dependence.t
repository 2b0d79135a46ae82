# Iterations that need what earlier ones wrote, next to some that do not.
# input x = f32[6] {1, 2, 3, 4, 5, 6}
# output running = f32[6] {1, 3, 6, 10, 15, 21}
# output shifted = f32[6] {2, 3, 4, 5, 6, 6}
# output spread = f32[6] {1, 1, 1, 1, 1, 1}
# output hits = i64[3] {2, 3, 1}
prog dependence
buf x: in f32[6]
buf running: out f32[6]
buf shifted: out f32[6]
buf spread: out f32[6]
buf hits: out i64[3]
buf which: const i64[6] = {1, 0, 1, 2, 0, 1}
running[0] = x[0]
for i in 1..6 {
  running[i] = running[i - 1] + x[i]
}
for i in 0..6 {
  shifted[i] = x[i]
  spread[i] = x[i]
}
for i in 0..5 {
  shifted[i] = shifted[i + 1]
  spread[i + 1] = spread[i]
}
for i in 0..3 {
  hits[i] = 0
}
for i in 0..6 {
  hits[which[i]] = hits[which[i]] + 1
}

# a kernel that counts ends where the count is too large, and behind it the run does
# run: --start=bounds
prog
sym u data in 0..4
buf x: in f32[8]
buf y: out f32[u]
kernel "count" {
  let n: i64 = 0
  for i in 0..8 {
    set n = n + cast.i64(x[i] != 0.0)
  }
  set u = n
  for i in 0..u {
    y[i] = 1.0
  }
}

# expect
ingot 2
prog
sym u data in 0..4
buf x: in f32[8]
buf y: out f32[u]
kernel "count" {
  let n: i64 = 0
  for i in 0..8 {
    set n = n + cast.i64(x[i] != 0.0)
  }
  set u = n
  require and(u >= 0, u <= 4) else "the size u, which the run computes, is outside of its bounds 0 to 4"
  for i in 0..u {
    y[i] = 1.0
  }
}
require and(u >= 0, u <= 4) else "the size u, which the run computes, is outside of its bounds 0 to 4"

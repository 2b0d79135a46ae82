# a size out of the state whose place a loop in a kernel counts: behind the kernel nobody knows that place, so the size is asked for
# run: --start=bounds --check
prog
sym u data in 0..4
buf s: state i64[2]
buf x: in f32[8]
buf y: out f32[u]
kernel "count" {
  for i in 0..2 {
    set u = s[i]
  }
  for i in 0..u {
    y[i] = 1.0
  }
}

# expect
ingot 2
prog
sym u data in 0..4
buf s: state i64[2]
buf x: in f32[8]
buf y: out f32[u]
kernel "count" {
  for i in 0..2 {
    set u = s[i]
    require and(u >= 0, u <= 4) else "the size u, which the run computes, is outside of its bounds 0 to 4"
  }
  for i in 0..u {
    y[i] = 1.0
  }
}
require and(u >= 0, u <= 4) else "the size u, which the run computes, is outside of its bounds 0 to 4"

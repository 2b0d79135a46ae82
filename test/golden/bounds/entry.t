# only that end is asked for which the value may leave; symbols that stay in their bounds need nothing
# run: --start=bounds
prog
sym n in 1..4
sym u data in 2..8
sym v data in 0..8
buf x: in i32[n]
buf y: out f32[u]
buf z: out f32[v]
set u = n * 2 + 1
set v = n * 2
kernel "one" {
  for i in 0..u {
    y[i] = cast.f32(x[0])
  }
  for i in 0..v {
    z[i] = 1.0
  }
}

# expect
ingot 2
prog
sym n in 1..4
sym u data in 2..8
sym v data in 0..8
buf x: in i32[n]
buf y: out f32[u]
buf z: out f32[v]
set u = n * 2 + 1
require u <= 8 else "the size u, which the run computes, is outside of its bounds 2 to 8"
set v = n * 2
kernel "one" {
  for i in 0..u {
    y[i] = cast.f32(x[0])
  }
  for i in 0..v {
    z[i] = 1.0
  }
}

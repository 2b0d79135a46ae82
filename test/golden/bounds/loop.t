# a size that grows from step to step is asked for at every step
# run: --start=bounds
prog
sym u data in 0..4
buf x: in f32[8]
buf y: out f32[u]
set u = 0
for i in 0..8 {
  if x[i] > 0.0 {
    set u = u + 1
  }
}
kernel "fill" {
  for i in 0..u {
    y[i] = x[i]
  }
}

# expect
ingot 2
prog
sym u data in 0..4
buf x: in f32[8]
buf y: out f32[u]
set u = 0
for i in 0..8 {
  if x[i] > 0.0 {
    set u = u + 1
    require u <= 4 else "the size u, which the run computes, is outside of its bounds 0 to 4"
  }
}
kernel "fill" {
  for i in 0..u {
    y[i] = x[i]
  }
}

# what is required already is not required twice
# run: --start=bounds
prog
sym u data in 0..4
buf x: in i64[1]
buf y: out f32[u]
kernel "set" {
  set u = x[0]
  require and(u >= 0, u <= 4) else "too large"
}
require and(u >= 0, u <= 4) else "too large"
kernel "fill" {
  for i in 0..u {
    y[i] = 1.0
  }
}

# expect
ingot 2
prog
sym u data in 0..4
buf x: in i64[1]
buf y: out f32[u]
kernel "set" {
  set u = x[0]
  require and(u >= 0, u <= 4) else "too large"
}
require and(u >= 0, u <= 4) else "too large"
kernel "fill" {
  for i in 0..u {
    y[i] = 1.0
  }
}

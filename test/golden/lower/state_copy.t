# states that change places: the one that would be overwritten is saved; a batch must not change
# run: --start=lower --stop=lower
graph swap
sym b in 1..4
(%1 "h": f32[2,b], %2 "c": f32[2,b], %3 "x": f32[b]) {
  %4: f32[2,b] = add(%1, %3)
  return %4 "y", %1 "cn" next %2, %4 "hn" next %1
}

# expect
ingot 2
prog swap
sym b in 1..4
buf sizes: state i64[1]
buf c: state f32[2,b]
buf h: state f32[2,b]
buf x: in f32[b]
buf y: out f32[2,b]
buf b6: temp f32[2,b]
require or(sizes[0] == 0, sizes[0] == b + 1) else "the state is of another size: b"
kernel "add" {
  for i in 0..2 {
    for j in 0..b {
      y[i, j] = h[i, j] + x[j]
    }
  }
}
kernel "copy" {
  for i in 0..2 {
    for j in 0..b {
      b6[i, j] = h[i, j]
    }
  }
}
kernel "copy" {
  for i in 0..2 {
    for j in 0..b {
      c[i, j] = b6[i, j]
    }
  }
}
kernel "copy" {
  for i in 0..2 {
    for j in 0..b {
      h[i, j] = y[i, j]
    }
  }
}
kernel "state" {
  sizes[0] = b + 1
}

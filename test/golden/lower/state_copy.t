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
kernel "add"
    as plain out y ns 9 reason "the target has no vectors" {
  for i in 0..2 as batch {
    for j in 0..b as batch {
      y[i, j] = h[i, j] + x[j]
    }
  }
}
kernel "copy"
    as plain out b6 ns 5 reason "the target has no vectors" {
  for i in 0..2 as batch {
    for j in 0..b as batch {
      b6[i, j] = h[i, j]
    }
  }
}
kernel "copy"
    as plain out c ns 5 reason "the target has no vectors" {
  for i in 0..2 as batch {
    for j in 0..b as batch {
      c[i, j] = b6[i, j]
    }
  }
}
kernel "copy"
    as plain out h ns 5 reason "the target has no vectors" {
  for i in 0..2 as batch {
    for j in 0..b as batch {
      h[i, j] = y[i, j]
    }
  }
}
kernel "state"
    as scalars {
  sizes[0] = b + 1
}

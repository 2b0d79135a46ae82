# Symbolic extents that must agree are required to; the number of nonzero elements becomes a variable.
# run: --start=lower --stop=lower
graph sym n in 1..8 sym m in 1..8 sym u data in 0..8 (%x "x": f32[n], %y "y": f32[m]) {
  %a: f32[n] = add(%x, %y)
  %i: i64[1,u] = nonzero(%a) sym(u)
  %j: i64[u] = reshape(%i) {shape = [u]}
  %b: f32[u] = gather(%x, %j) {axis = 0}
  return %b "b"
}

# expect
ingot 2
prog
sym n in 1..8
sym m in 1..8
sym u data in 0..8
buf x: in f32[n]
buf y: in f32[m]
buf b: out f32[u]
buf b4: temp f32[n]
buf b5: temp i64[1,u]
buf b6: temp i64[u] alias b5
require or(m == n, m == 1) else "add: m is neither n nor 1"
kernel "add"
    as plain out b4 ns 8 reason "the target has no vectors" {
  for i in 0..n as batch {
    b4[i] = x[i] + y[select(m == 1, 0, i)]
  }
}
kernel "nonzero"
    as search ns 18 {
  let count: i64 = 0
  for i in 0..n {
    set count = count + cast.i64(b4[i] != 0.0)
  }
  set u = count
  set count = 0
  for i in 0..n {
    if b4[i] != 0.0 {
      b5[0, count] = i
      set count = count + 1
    }
  }
}
kernel "gather"
    as indexed ns 18 {
  for i in 0..u as batch {
    let raw: i64 = b6[i]
    let pos: i64 = select(raw < 0, raw + n, raw)
    let pick: i64 = max(min(pos, n - 1), 0)
    b[i] = x[pick]
  }
}

# A loop that looks at a condition, and a trip count that is an input.
# run: --start=lower --stop=lower
graph (%x "x": f32[], %n "n": i64[]) {
  %t: bool[] = const {true}
  %most: f32[] = const {100}
  %y: f32[] = loop(%n, %t, %x) {scans = 0} (%i: i64[], %g: bool[], %p: f32[]) {
    %q: f32[] = add(%p, %p)
    %l: bool[] = lt(%q, %most)
    return %l, %q
  }
  return %y "y"
}

# expect
ingot 2
prog
buf x: in f32[]
buf n: in i64[]
buf y: out f32[]
buf b6: temp i64[]
buf b7: temp bool[]
buf b8: temp f32[]
buf b9: temp bool[]
kernel "copy"
    as plain out y reason "the target has no vectors" {
  y[] = x[]
}
let iter: i64 = 0
let go: bool = true
while and(iter < n[], go) {
  b6[] = iter
  b7[] = go
  kernel "add"
      as plain out b8 ns 1 reason "the target has no vectors" {
    b8[] = y[] + y[]
  }
  kernel "lt"
      as plain out b9 ns 1 reason "the target has no vectors" {
    b9[] = b8[] < 100.0
  }
  set go = b9[]
  kernel "copy"
      as plain out y reason "the target has no vectors" {
    y[] = b8[]
  }
  set iter = iter + 1
}

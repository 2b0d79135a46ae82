# a cache that grows is kept in memory for its bound: what is new is written behind the rest, and the length is kept with it
# run: --start=lower --stop=lower
graph append
sym p in 0..7
sym n in 0..4
(%1 "past": f32[1,2,p,3], %2 "x": f32[1,2,n,3]) {
  %3: f32[1,2,n+p,3] = concat(%1, %2) {axis=2}
  %4: f32[2,n+p,3] = reshape(%3) {shape=[2,n+p,3]}
  %5: f32[2,3] = reduce_sum(%4) {axes=[1], keep=0}
  return %5 "y", %3 "present" next %1
}

# expect
ingot 2
prog append
sym p data in 0..7
sym n in 0..4
buf lengths: state i64[1]
buf past: state f32[1,2,11,3]
buf x: in f32[1,2,n,3]
buf y: out f32[2,3]
buf b7: temp f32[2,11,3] alias past
require lengths[0] >= 0 else "the state is full: p cannot grow"
require lengths[0] <= 7 else "the state is full: p cannot grow"
set p = lengths[0]
kernel "concat"
    as plain ns 15 reason "the target has no vectors" {
  for j in 0..2 as batch {
    for k in 0..n as batch {
      for l in 0..3 as batch {
        past[0, j, p + k, l] = x[0, j, k, l]
      }
    }
  }
}
kernel "reduce_sum"
    as plain sum f32 of f32 out y ns 47 reason "the target has no vectors; a step costs 12.7 along the reduction, 27.0 along a row" {
  for i in 0..2 as batch {
    for j in 0..3 as batch {
      let acc: f32 = 0.0
      for k in 0..n + p as reduce {
        set acc = acc + b7[i, k, j]
      }
      y[i, j] = acc
    }
  }
}
kernel "state"
    as scalars {
  lengths[0] = n + p
}

# a cache with a largest extent has memory for no more, whatever one run may add, and refuses a run that needs it
# run: --start=lower --stop=lower
graph append
sym p in 0..7
sym n in 1..4
(%1 "past": f32[p], %2 "x": f32[n]) {
  %3: f32[n+p] = concat(%1, %2) {axis=0}
  %4: f32[] = reduce_sum(%3) {axes=[0], keep=0}
  return %4 "y", %3 "present" next %1 most 8
}

# expect
ingot 2
prog append
sym p data in 0..7
sym n in 1..4
buf lengths: state i64[1]
buf past: state f32[8]
buf x: in f32[n]
buf y: out f32[]
require lengths[0] >= 0 else "the state is full: p cannot grow"
require lengths[0] <= 7 else "the state is full: p cannot grow"
set p = lengths[0]
require n + p <= 8 else "the state is full: p cannot grow"
kernel "concat"
    as plain ns 2 reason "the target has no vectors" {
  for i in 0..n as batch {
    past[p + i] = x[i]
  }
}
kernel "reduce_sum"
    as plain sum f32 of f32 out y ns 8 reason "the target has no vectors" {
  let acc: f32 = 0.0
  for i in 0..n + p as reduce {
    set acc = acc + past[i]
  }
  y[] = acc
}
kernel "state"
    as scalars {
  lengths[0] = n + p
}

# a window of 5 that slides by 2 is a ring of 7 places, stored twice in a row; reading adds the head, also through a view
# run: --start=lower --stop=lower
graph ring
(%1 "past": f32[1,5,3], %2 "x": f32[1,2,3]) {
  %3: f32[1,7,3] = concat(%1, %2) {axis=1}
  %4: f32[1,5,3] = slice(%3) {start=[0,2,0], size=[1,5,3], step=[1,1,1]}
  %5: f32[1,3] = reduce_sum(%3) {axes=[1], keep=0}
  %6: f32[15] = reshape(%4) {shape=[15]}
  %7: f32[15] = neg(%6)
  return %5 "y", %7 "z", %4 "present" next %1
}

# expect
ingot 2
prog ring
buf heads: state i64[1]
buf past: state f32[1,14,3]
buf x: in f32[1,2,3]
buf y: out f32[1,3]
buf z: out f32[15]
buf b9: temp f32[42] alias past
require heads[0] >= 0 else "the state was never cleared: past"
require heads[0] <= 6 else "the state was never cleared: past"
let head: i64 = heads[0]
kernel "concat"
    as plain ns 6 reason "the target has no vectors" {
  for j in 0..2 as batch {
    for k in 0..3 as batch {
      past[0, head + (5 + j), k] = x[0, j, k]
      past[0, select(head + (5 + j) < 7, head + (5 + j) + 7, head + (5 + j) - 7), k] = x[0, j, k]
    }
  }
}
kernel "reduce_sum"
    as plain sum f32 of f32 out y ns 15 reason "the target has no vectors; a step costs 17.7 along the reduction, 27.0 along a row" {
  for j in 0..3 as batch {
    let acc: f32 = 0.0
    for k in 0..7 as reduce {
      set acc = acc + past[0, head + k, j]
    }
    y[0, j] = acc
  }
}
kernel "neg"
    as plain out z ns 12 reason "the target has no vectors" {
  for i in 0..15 as batch {
    z[i] = neg(b9[(head + 2) * 3 + i])
  }
}
kernel "state"
    as scalars ns 1 {
  heads[0] = mod(head + 2, 7)
}

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
kernel "concat" {
  for j in 0..2 {
    for k in 0..3 {
      past[0, head + (5 + j), k] = x[0, j, k]
      past[0, select(head + (5 + j) < 7, head + (5 + j) + 7, head + (5 + j) - 7), k] = x[0, j, k]
    }
  }
}
kernel "reduce_sum" {
  for j in 0..3 {
    let acc: f32 = 0.0
    for k in 0..7 {
      set acc = acc + past[0, head + k, j]
    }
    y[0, j] = acc
  }
}
kernel "neg" {
  for i in 0..15 {
    z[i] = neg(b9[(head + 2) * 3 + i])
  }
}
kernel "state" {
  heads[0] = mod(head + 2, 7)
}

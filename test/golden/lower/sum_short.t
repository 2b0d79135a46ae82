# sums of sixteen that lie side by side: one after the other, as a row of sums would read what lies apart
# run: --march=scalar --start=layout --stop=lower
graph
(%x: f32[512,16]) {
  %y: f32[512] = reduce_sum(%x) {axes=[1], keep=0}
  return %y
}

# expect
ingot 2
prog
buf b1: in f32[512,16]
buf b2: out f32[512]
kernel "reduce_sum"
    as plain sum f32 of f32 out b2 ns 5734 reason "the target has no vectors; a step costs 5.0 along the reduction, 5.2 along a row" {
  for i in 0..512 as batch {
    let acc: f32 = 0.0
    for j in 0..16 as reduce {
      set acc = acc + b1[i, j]
    }
    b2[i] = acc
  }
}

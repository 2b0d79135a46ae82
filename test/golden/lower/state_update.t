# rows of a cache of fixed length are replaced in place
# run: --start=lower --stop=lower
graph update
(%1 "cache": f32[8,3], %2 "at": i64[1,1], %3 "x": f32[1,3]) {
  %4: f32[8,3] = scatter_nd(%1, %2, %3) {reduce="none"}
  %5: f32[3] = reduce_sum(%4) {axes=[0], keep=0}
  return %5 "y", %4 "next_cache" next %1
}

# expect
ingot 2
prog update
buf cache: state f32[8,3]
buf at: in i64[1,1]
buf x: in f32[1,3]
buf y: out f32[3]
kernel "scatter_nd"
    as indexed ns 3 {
  let raw: i64 = at[0, 0]
  let pos: i64 = select(raw < 0, raw + 8, raw)
  if and(pos >= 0, pos < 8) {
    for i in 0..3 {
      cache[pos, i] = x[0, i]
    }
  }
}
kernel "reduce_sum"
    as plain sum f32 of f32 out y ns 17 reason "the target has no vectors; a step costs 16.0 along the reduction, 27.0 along a row" {
  for i in 0..3 as batch {
    let acc: f32 = 0.0
    for j in 0..8 as reduce {
      set acc = acc + cache[j, i]
    }
    y[i] = acc
  }
}

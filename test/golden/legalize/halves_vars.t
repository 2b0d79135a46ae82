# variables of halves are f32, and operations on them are rounded one by one; what only chooses is not
# run: --march sse2 --start=unroll --stop=legalize
prog halves_vars
buf x: in bf16[4]
buf y: out bf16[4]
buf m: out bool[4]
kernel "halves" {
  let a: bf16x4 = x[0:4]
  let b: bf16x4 = max(a * a, a)
  set b = select(b > a, b, neg(a))
  m[0:4] = isnan(b)
  y[0:4] = b
}

# expect
ingot 2
prog halves_vars
buf x: in bf16[4]
buf y: out bf16[4]
buf m: out bool[4]
kernel "halves" {
  let a: f32x4 = bitcast.f32(shl(cast.i32(bitcast.u16(x[0:4])), splat.4(16:i32)))
  let t: i32x4 = bitcast.i32(a * a)
  let t1: i32x4 = shr(t, splat.4(16:i32))
  let b: f32x4 = max(bitcast.f32(shl(cast.i32(cast.u16(select(and(t, splat.4(2147483647:i32)) > splat.4(2139095040:i32), or(t1, splat.4(64:i32)), shr(t + splat.4(32767:i32) + and(t1, splat.4(1:i32)), splat.4(16:i32))))), splat.4(16:i32))), a)
  set b = select(b > a, b, neg(a))
  m[0:4] = isnan(b)
  let t2: i32x4 = bitcast.i32(b)
  let t3: i32x4 = shr(t2, splat.4(16:i32))
  y[0:4] = bitcast.bf16(cast.u16(select(and(t2, splat.4(2147483647:i32)) > splat.4(2139095040:i32), or(t3, splat.4(64:i32)), shr(t2 + splat.4(32767:i32) + and(t3, splat.4(1:i32)), splat.4(16:i32)))))
}

# what SSE2 has no instruction for is a sequence of what it has: rounding, saturation; bytes that are made at once (ex_bytes) stay
# run: --march sse2 --start=legalize --stop=legalize
prog sequence
buf x: in f32[4]
buf n: in i32[4]
buf y: out f32[4]
buf z: out i8[4]
buf b: out u8[4]
buf s: out u8[4]
kernel "sequence" {
  y[0:4] = floor(x[0:4])
  z[0:4] = cast.i8.sat(x[0:4])
  b[0:4] = cast.u8.sat(round(x[0:4]))
  s[0:4] = cast.u8.sat(n[0:4])
}

# expect
ingot 2
prog sequence
buf x: in f32[4]
buf n: in i32[4]
buf y: out f32[4]
buf z: out i8[4]
buf b: out u8[4]
buf s: out u8[4]
kernel "sequence" {
  let t: f32x4 = x[0:4]
  let t1: i32x4 = bitcast.i32(t)
  let t2: i32x4 = and(t1, splat.4(2147483647:i32))
  let t3: f32x4 = select(t2 < splat.4(1258291200:i32), bitcast.f32(or(bitcast.i32(bitcast.f32(t2) + splat.4(8388608.0) - splat.4(8388608.0)), xor(t1, t2))), t)
  y[0:4] = select(t3 > t, t3 - splat.4(1.0), t3)
  let t4: f32x4 = x[0:4]
  let t5: f32x4 = select(t4 == t4, t4, splat.4(0.0))
  let t6: f32x4 = select(t5 < splat.4(-128.0), splat.4(-128.0), t5)
  z[0:4] = cast.i8(cast.i32.small(select(t6 > splat.4(127.0), splat.4(127.0), t6)))
  b[0:4] = cast.u8.sat(round(x[0:4]))
  let t7: i32x4 = n[0:4]
  s[0:4] = cast.u8(max(min(t7, splat.4(255:i32)), splat.4(0:i32)))
}

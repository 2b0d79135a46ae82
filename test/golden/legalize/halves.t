# f16 and bf16 that SSE2 cannot widen: f32 in registers, their bits in memory; a copy is one of bits, and what is rounded and widened is a sequence too
# run: --march sse2 --start=unroll --stop=legalize
prog halves
buf x: in f16[4]
buf w: in bf16[4]
buf y: out f16[4]
buf z: out bf16[4]
buf c: out f16[4]
buf r: out f32[4]
kernel "halves" {
  y[0:4] = cast.f16(cast.f32(x[0:4]) + splat.4(1.0))
  z[0:4] = cast.bf16(cast.f32(w[0:4]) + splat.4(1.0))
  c[0:4] = x[0:4]
  r[0:4] = cast.f32(cast.bf16(cast.f32(w[0:4]) + splat.4(1.0)))
}

# expect
ingot 2
prog halves
buf x: in f16[4]
buf w: in bf16[4]
buf y: out f16[4]
buf z: out bf16[4]
buf c: out f16[4]
buf r: out f32[4]
kernel "halves" {
  let t: i32x4 = cast.i32(bitcast.u16(x[0:4]))
  let t1: i32x4 = shl(and(t, splat.4(32767:i32)), splat.4(13:i32))
  let t2: i32x4 = bitcast.i32(bitcast.f32(or(or(bitcast.i32(bitcast.f32(t1) * splat.4(5.192297e+33)), select(t1 < splat.4(260046848:i32), splat.4(0:i32), splat.4(2139095040:i32))), shl(and(t, splat.4(32768:i32)), splat.4(16:i32)))) + splat.4(1.0))
  let t3: i32x4 = and(t2, splat.4(2147483647:i32))
  let t4: i32x4 = shr(t3, splat.4(13:i32))
  y[0:4] = bitcast.f16(cast.u16(or(select(t3 < splat.4(1199570944:i32), select(t3 < splat.4(947912704:i32), bitcast.i32(bitcast.f32(t3) + splat.4(0.5)) - splat.4(1056964608:i32), shr(t3 + splat.4(-939520001:i32) + and(t4, splat.4(1:i32)), splat.4(13:i32))), select(t3 > splat.4(2139095040:i32), or(and(t4, splat.4(1023:i32)), splat.4(32256:i32)), splat.4(31744:i32))), and(shr(t2, splat.4(16:i32)), splat.4(32768:i32)))))
  let t5: i32x4 = bitcast.i32(bitcast.f32(shl(cast.i32(bitcast.u16(w[0:4])), splat.4(16:i32))) + splat.4(1.0))
  let t6: i32x4 = shr(t5, splat.4(16:i32))
  z[0:4] = bitcast.bf16(cast.u16(select(and(t5, splat.4(2147483647:i32)) > splat.4(2139095040:i32), or(t6, splat.4(64:i32)), shr(t5 + splat.4(32767:i32) + and(t6, splat.4(1:i32)), splat.4(16:i32)))))
  c[0:4] = x[0:4]
  let t7: i32x4 = bitcast.i32(bitcast.f32(shl(cast.i32(bitcast.u16(w[0:4])), splat.4(16:i32))) + splat.4(1.0))
  let t8: i32x4 = shr(t7, splat.4(16:i32))
  r[0:4] = bitcast.f32(shl(cast.i32(cast.u16(select(and(t7, splat.4(2147483647:i32)) > splat.4(2139095040:i32), or(t8, splat.4(64:i32)), shr(t7 + splat.4(32767:i32) + and(t8, splat.4(1:i32)), splat.4(16:i32))))), splat.4(16:i32)))
}

# f16 and bf16 that AVX2 has instructions for: as they are; bf16 it has none for is a sequence on every machine
# run: --march avx2 --start=unroll --stop=legalize
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
  y[0:4] = cast.f16(cast.f32(x[0:4]) + splat.4(1.0))
  let t: i32x4 = bitcast.i32(bitcast.f32(shl(cast.i32(bitcast.u16(w[0:4])), splat.4(16:i32))) + splat.4(1.0))
  let t1: i32x4 = shr(t, splat.4(16:i32))
  z[0:4] = bitcast.bf16(cast.u16(select(and(t, splat.4(2147483647:i32)) > splat.4(2139095040:i32), or(t1, splat.4(64:i32)), shr(t + splat.4(32767:i32) + and(t1, splat.4(1:i32)), splat.4(16:i32)))))
  c[0:4] = x[0:4]
  let t2: i32x4 = bitcast.i32(bitcast.f32(shl(cast.i32(bitcast.u16(w[0:4])), splat.4(16:i32))) + splat.4(1.0))
  let t3: i32x4 = shr(t2, splat.4(16:i32))
  r[0:4] = bitcast.f32(shl(cast.i32(cast.u16(select(and(t2, splat.4(2147483647:i32)) > splat.4(2139095040:i32), or(t3, splat.4(64:i32)), shr(t2 + splat.4(32767:i32) + and(t3, splat.4(1:i32)), splat.4(16:i32))))), splat.4(16:i32)))
}

# products by pairs and signs of bytes, on a machine without either; dot_i16x2 it has
# run: --march sse2 --start=legalize --stop=legalize
prog signs
buf a: in i32[4]
buf b: in i32[4]
buf y: out i32[4]
buf z: out i32[4]
buf d: out i32[4]
kernel "signs" {
  y[0:4] = maddubs(a[0:4], b[0:4], splat.4(0:i32))
  z[0:4] = psign(a[0:4], b[0:4])
  d[0:4] = dot_i16x2(a[0:4], b[0:4], splat.4(0:i32))
}

# expect
ingot 2
prog signs
buf a: in i32[4]
buf b: in i32[4]
buf y: out i32[4]
buf z: out i32[4]
buf d: out i32[4]
kernel "signs" {
  let t: i32x4 = a[0:4]
  let t1: i32x4 = b[0:4]
  let t2: i32x4 = splat.4(0:i32)
  y[0:4] = or(and(t2 + min(max(and(t, splat.4(255:i32)) * shr(shl(t1, splat.4(24:i32)), splat.4(24:i32)) + and(shr(t, splat.4(8:i32)), splat.4(255:i32)) * shr(shl(t1, splat.4(16:i32)), splat.4(24:i32)), splat.4(-32768:i32)), splat.4(32767:i32)), splat.4(65535:i32)), and(t2 + shl(min(max(and(shr(t, splat.4(16:i32)), splat.4(255:i32)) * shr(shl(t1, splat.4(8:i32)), splat.4(24:i32)) + and(shr(t, splat.4(24:i32)), splat.4(255:i32)) * shr(t1, splat.4(24:i32)), splat.4(-32768:i32)), splat.4(32767:i32)), splat.4(16:i32)), splat.4(-65536:i32)))
  let t3: i32x4 = a[0:4]
  let t4: i32x4 = b[0:4]
  let t5: i32x4 = and(shr(t4, splat.4(7:i32)), splat.4(16843009:i32))
  let t6: i32x4 = shl(t5, splat.4(8:i32)) - t5
  let t7: i32x4 = xor(t3, t6)
  let t8: i32x4 = and(shr(or(t4, and(t4, splat.4(2139062143:i32)) + splat.4(2139062143:i32)), splat.4(7:i32)), splat.4(16843009:i32))
  z[0:4] = and(xor(and(t7, splat.4(2139062143:i32)) + and(t6, splat.4(16843009:i32)), and(t7, splat.4(-2139062144:i32))), shl(t8, splat.4(8:i32)) - t8)
  d[0:4] = dot_i16x2(a[0:4], b[0:4], splat.4(0:i32))
}

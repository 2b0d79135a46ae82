# a quotient that becomes bytes is two products, one where the divisor is a power of 2; a divisor that varies, quotients of other use and numbers that no float is the reciprocal of stay
# run: --march avx2 --start=legalize --stop=legalize
prog quotient
buf x: in f32[8]
buf y: out u8[8]
buf z: out i8[8]
buf u: out f32[8]
buf v: out u8[8]
kernel "quotient" {
  y[0:8] = cast.u8.sat(round(div(x[0:8], splat.8(0.3))) + splat.8(7.0))
  z[0:8] = cast.i8.sat(round(div(x[0:8], splat.8(0.25))))
  u[0:8] = round(div(x[0:8], splat.8(0.3)))
  v[0:8] = cast.u8.sat(round(div(x[0:8], x[0:8])))
  v[0:8] = cast.u8.sat(round(div(x[0:8], splat.8(1e-40))))
}

# expect
ingot 2
prog quotient
buf x: in f32[8]
buf y: out u8[8]
buf z: out i8[8]
buf u: out f32[8]
buf v: out u8[8]
kernel "quotient" {
  let tmp: f32x8 = x[0:8]
  y[0:8] = cast.u8.sat(round(fma(tmp, splat.8(3.333333), tmp * splat.8(1.8543668e-07))) + splat.8(7.0))
  let tmp1: f32x8 = x[0:8]
  z[0:8] = cast.i8.sat(round(tmp1 * splat.8(4.0)))
  u[0:8] = round(div(x[0:8], splat.8(0.3)))
  v[0:8] = cast.u8.sat(round(div(x[0:8], x[0:8])))
  v[0:8] = cast.u8.sat(round(div(x[0:8], splat.8(9.99995e-41))))
}

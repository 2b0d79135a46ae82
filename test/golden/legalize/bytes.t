# four registers of floats become one of bytes: in order, or, if they were bytes, in the parts of 128 bits that machines pack and unpack
# run: --march avx2 --start=legalize --stop=legalize
prog bytes
buf b: in u8[32]
buf x: in f32[32]
buf y: out u8[32]
buf z: out i8[32]
kernel "bytes" {
  y[0:32] = cast.u8.sat(round(cast.f32(cast.i32(b[0:32]) - splat.32(121:i32)) * splat.32(0.5)) + splat.32(125.0))
  z[0:32] = cast.i8.sat(round(x[0:32]) + splat.32(3.0))
}

# expect
ingot 2
prog bytes
buf b: in u8[32]
buf x: in f32[32]
buf y: out u8[32]
buf z: out i8[32]
kernel "bytes" {
  let b: u8x32 = b[0:32]
  let x: f32x8 = cast.f32(cast.i32(shuffle.0.1.2.3.16.17.18.19(b)) - splat.8(121:i32)) * splat.8(0.5)
  let x1: f32x8 = cast.f32(cast.i32(shuffle.4.5.6.7.20.21.22.23(b)) - splat.8(121:i32)) * splat.8(0.5)
  let x2: f32x8 = cast.f32(cast.i32(shuffle.8.9.10.11.24.25.26.27(b)) - splat.8(121:i32)) * splat.8(0.5)
  let x3: f32x8 = cast.f32(cast.i32(shuffle.12.13.14.15.28.29.30.31(b)) - splat.8(121:i32)) * splat.8(0.5)
  y[0:32] = cast.u8.sat(round(shuffle.0.1.2.3.8.9.10.11.16.17.18.19.24.25.26.27.4.5.6.7.12.13.14.15.20.21.22.23.28.29.30.31(x, x1, x2, x3)) + splat.32(125.0))
  let x4: f32x8 = x[0:8]
  let x5: f32x8 = x[8:8]
  let x6: f32x8 = x[16:8]
  let x7: f32x8 = x[24:8]
  z[0:32] = cast.i8.sat(round(shuffle.0.1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18.19.20.21.22.23.24.25.26.27.28.29.30.31(x4, x5, x6, x7)) + splat.32(3.0))
}

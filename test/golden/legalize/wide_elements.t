# the widest elements of a kernel decide where all of its vectors are split
# run: --march=avx2 --start=legalize --stop=legalize
prog
buf x: in f32[8]
buf y: out f64[8]
buf z: out i8[8]
kernel "widen" {
  y[0:8] = cast.f64(x[0:8])
}
kernel "narrow" {
  z[0:8] = cast.i8.sat(round(x[0:8]) + splat.8(3.0))
}

# expect
ingot 2
prog
buf x: in f32[8]
buf y: out f64[8]
buf z: out i8[8]
kernel "widen" {
  y[0:4] = cast.f64(x[0:4])
  y[4:4] = cast.f64(x[4:4])
}
kernel "narrow" {
  z[0:8] = cast.i8.sat(round(x[0:8]) + splat.8(3.0))
}

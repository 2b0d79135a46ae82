# a text of version 1, without a version line, is read with the words of that version
# input x = f32[2,4] {1, 2, 3, 4, -1, 0.5, 0, 2}
# input w = f32[4] {1, -1, 2, 0.5}
# input a = i32[8] {16909060, -1, 127, 256, 1, 2, 3, 4}
# output y = f32[2,4] {2, -1, 7, 3, -2, -1.5, -1, 0}
# output z = i32[8] {327705, -65538, 16129, 1, 1, 4, 9, 16}
# output e = f32[2] {1, 2}
# tol: 0 1e-6
prog old
buf x: in f32[2,4]
buf w: in f32[4]
buf a: in i32[8]
buf y: out f32[2,4]
buf z: out i32[8]
buf e: out f32[2]
buf k: const f32[4] = {0.5, 0.5, 0.5, 0.5}
buf r: reg f32x4[]
buf pin: temp f32[2]
kernel "products" walks {
  for i in 0..2 {
    barrier x
    hold ahead 64 r[] = x[i, 0:4]
    barrier w many
    fetch k at i * 4096
    y[i, 0:4] = r[] * w[0:4] + splat.4(x[i, 0]) * (k[0:4] + k[0:4])
  }
}
kernel "bytes" {
  z[0:8] = pairs(sign4(a[0:8], a[0:8]), a[0:8], splat.8(0:i32))
}
kernel "functions" {
  pin[0] = exp0(0.0)
  e[0] = pin[0]
  e[1] = exp1(0.0)
}

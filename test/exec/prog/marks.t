# when loads are done changes nothing: barriers, registers that hold what they load, memory that is fetched, behind its end too
# input x = f32[2,4] {1, 2, 3, 4, -1, 0.5, 0, 2}
# input w = f32[4] {1, -1, 2, 0.5}
# output y = f32[2,4] {2, -1, 7, 3, -2, -1.5, -1, 0}
prog marks
buf x: in f32[2,4]
buf w: in f32[4]
buf y: out f32[2,4]
buf k: const f32[4] = {0.5, 0.5, 0.5, 0.5}
buf r: reg f32x4[]
kernel "products" {
  for i in 0..2 {
    fence x
    pin prefetch 64 r[] = x[i, 0:4]
    fence w spills
    prefetch k at i * 4096
    y[i, 0:4] = r[] * w[0:4] + splat.4(x[i, 0]) * (k[0:4] + k[0:4])
  }
}

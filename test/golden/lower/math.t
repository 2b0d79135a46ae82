# a machine with vectors gets fast functions
# run: --stop=lower --march=avx2 --skip=fuse
graph g (%1 "x": f32[4]) {
  %2: f32[4] = tanh(%1)
  return %2 "y"
}

# expect
ingot 2
prog g
math fused
buf x: in f32[4]
buf y: out f32[4]
kernel "tanh"
    as map lanes 4 out y ns 3 reason "4 contiguous elements" {
  y[0:4] = tanh(x[0:4])
}

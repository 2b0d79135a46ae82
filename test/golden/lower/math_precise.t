# unless they shall be precise
# run: --stop=lower --march=avx2 --skip=fuse --precise
graph g (%1 "x": f32[4]) {
  %2: f32[4] = tanh(%1)
  return %2 "y"
}

# expect

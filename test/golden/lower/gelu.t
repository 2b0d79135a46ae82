# x (1 + erf(x / sqrt 2)) is one function where products are added without rounding, whatever x is made of
# run: --stop=lower --march=avx2
graph g (%1 "x": f32[8], %2 "b": f32[8]) {
  %3: f32[] = const {1}
  %4: f32[] = const {0.70710677}
  %5: f32[8] = add(%1, %2)
  %6: f32[8] = mul(%5, %4)
  %7: f32[8] = erf(%6)
  %8: f32[8] = add(%7, %3)
  %9: f32[8] = mul(%8, %5)
  return %9 "y"
}

# expect
ingot 2
prog g
math fused
buf x: in f32[8]
buf b: in f32[8]
buf y: out f32[8]
kernel "add_add_mul_erf_add_mul"
    as map lanes 8 out y ns 3 reason "8 contiguous elements" {
  y[0:8] = gelu_x2(x[0:8] + b[0:8])
}

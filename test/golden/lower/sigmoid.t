# 1 + exp(x) is one function where products are added without rounding
# run: --stop=lower --march=avx2
graph g (%1 "x": f32[8]) {
  %2: f32[] = const {1}
  %3: f32[8] = neg(%1)
  %4: f32[8] = exp(%3)
  %5: f32[8] = add(%4, %2)
  %6: f32[8] = div(%1, %5)
  return %6 "y"
}

# expect
ingot 2
prog g
math fused
buf x: in f32[8]
buf y: out f32[8]
kernel "neg_exp_add_div"
    as map lanes 8 out y ns 3 reason "8 contiguous elements" {
  y[0:8] = div(x[0:8], exp_p1(neg(x[0:8])))
}

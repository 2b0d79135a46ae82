# Functions of numbers between -1 and 1.
# tol: 2e-7 1e-9
# input a = f32[4] {0, 0.5, -0.75, 0.875}
# output asin = f32[4] {0, 0.5235987901687622, -0.8480620980262756, 1.065435767173767}
# output acos = f32[4] {1.5707963705062866, 1.0471975803375244, 2.418858289718628, 0.50536048412323}
# output atanh = f32[4] {0, 0.5493061542510986, -0.972955048084259, 1.35402512550354}
graph (%a "a": f32[4]) {
  %asin: f32[4] = asin(%a)
  %acos: f32[4] = acos(%a)
  %atanh: f32[4] = atanh(%a)
  return %asin "asin", %acos "acos", %atanh "atanh"
}

# a (1 + erf(a / sqrt 2)): errors grow with |a|, of which the result is a small part below 0
# tol: 1e-6 2e-6
# input a = f32[11] {0, -0, 0.5, -0.75, 1, 2, -3, 5.72, -40, inf, nan}
# output y = f32[11] {0, 0, 0.69146246, -0.33994103, 1.6826895, 3.9089994, -0.0080993883, 11.44, 0, inf, nan}
# output z = f64[3] {0.69146246127401312, -0.3399410285653023, 3.908999472207283}
graph (%a "a": f32[11]) {
  %b: f64[3] = const {0.5, -0.75, 2}
  %y: f32[11] = gelu_x2(%a)
  %z: f64[3] = gelu_x2(%b)
  return %y "y", %z "z"
}

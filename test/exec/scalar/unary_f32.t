# One operand, floats, exact ones; halves round to even.
# input a = f32[8] {2.5, -2.5, 3.5, -0.25, 4, inf, -inf, nan}
# output neg = f32[8] {-2.5, 2.5, -3.5, 0.25, -4, -inf, inf, nan}
# output abs = f32[8] {2.5, 2.5, 3.5, 0.25, 4, inf, inf, nan}
# output sign = f32[8] {1, -1, 1, -1, 1, 1, -1, nan}
# output floor = f32[8] {2, -3, 3, -1, 4, inf, -inf, nan}
# output ceil = f32[8] {3, -2, 4, -0.0, 4, inf, -inf, nan}
# output round = f32[8] {2, -2, 4, -0.0, 4, inf, -inf, nan}
# output trunc = f32[8] {2, -2, 3, -0.0, 4, inf, -inf, nan}
graph (%a "a": f32[8]) {
  %neg: f32[8] = neg(%a)
  %abs: f32[8] = abs(%a)
  %sign: f32[8] = sign(%a)
  %floor: f32[8] = floor(%a)
  %ceil: f32[8] = ceil(%a)
  %round: f32[8] = round(%a)
  %trunc: f32[8] = trunc(%a)
  return %neg "neg", %abs "abs", %sign "sign", %floor "floor", %ceil "ceil", %round "round", %trunc "trunc"
}

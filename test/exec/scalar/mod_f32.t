# Remainders: mod has the sign of the divisor, fmod that of the dividend.
# input a = f32[5] {7, -7, 7, -7, 5.5}
# input b = f32[5] {3, 3, -3, -3, 2}
# output mod = f32[5] {1, 2, -2, -1, 1.5}
# output fmod = f32[5] {1, -1, 1, -1, 1.5}
graph (%a "a": f32[5], %b "b": f32[5]) {
  %mod: f32[5] = mod(%a, %b)
  %fmod: f32[5] = fmod(%a, %b)
  return %mod "mod", %fmod "fmod"
}

# Arithmetic of f16 happens in f32 and is rounded after every operation.
# input a = f16[3] {2048, 1, 60000}
# input b = f16[3] {1, 0.0004883, 60000}
# output s = f16[3] {2048, 1, inf}
# output t = f16[3] {2048, 1, inf}
# output p = f16[3] {2048, 0.00048828125, inf}
graph (%a "a": f16[3], %b "b": f16[3]) {
  %s: f16[3] = add(%a, %b)
  %t: f16[3] = add(%s, %b)
  %p: f16[3] = mul(%a, %b)
  return %s "s", %t "t", %p "p"
}

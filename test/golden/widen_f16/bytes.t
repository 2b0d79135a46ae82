# floats of 8 bits are what a quantized model means by them: the cast rounds
# run: --march avx2 --start=widen_f16 --stop=widen_f16
graph bytes
(%1 "a": f32[4]) {
  %2: f8e4m3fn[4] = cast(%1) {to=f8e4m3fn}
  %3: f32[4] = cast(%2) {to=f32}
  return %3 "y"
}

# expect
ingot 2
graph bytes
(%1 "a": f32[4]) {
  %2: f8e4m3fn[4] = cast(%1) {to=f8e4m3fn}
  %3: f32[4] = cast(%2) {to=f32}
  return %3 "y"
}

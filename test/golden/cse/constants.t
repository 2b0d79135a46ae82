# constants are equal by type and bits
# run: --start=cse --stop=cse
graph () {
  %a: f32[2] = const {0, 1}
  %b: f32[2] = const {-0, 1}
  %c: f32[2] = const {0, 1}
  %d: f32[1,2] = const {0, 1}
  %e: f64[2] = const {0, 1}
  %f: str[1] = const {"a"}
  %g: str[1] = const {"a"}
  return %a, %b, %c, %d, %e, %f, %g
}

# expect
ingot 2
graph
() {
  %1: f32[2] = const {0, 1}
  %2: f32[2] = const {-0, 1}
  %3: f32[1,2] = const {0, 1}
  %4: f64[2] = const {0, 1}
  %5: str[1] = const {"a"}
  return %1, %2, %1, %3, %4, %5, %5
}

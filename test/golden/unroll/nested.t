# bounds of a loop by the variable of another; a loop that stays has its variable in every step, and marks are kept; no step: nothing
# run: --march=avx2 --start=unroll --stop=unroll
prog
buf x: in f32[4,8]
buf y: out f32[4]
buf v: reg f32x8[2]
kernel "triangle" {
  for i in 0..3 step 2 unroll {
    let sum: f32 = 0.0
    for j in i..3 unroll {
      fence x
      pin v[0] = x[j, 0:8]
      set sum = sum + reduce.add(v[0])
    }
    for k in 0..8 {
      set sum = sum * x[i, k]
    }
    for l in i..0 unroll {
      set sum = 0.0
    }
    y[i + 1] = sum
  }
}

# expect
ingot 2
prog
buf x: in f32[4,8]
buf y: out f32[4]
buf v: reg f32x8[2]
kernel "triangle" {
  let sum: f32 = 0.0
  fence x
  pin v[0] = x[0, 0:8]
  set sum = sum + reduce.add(v[0])
  fence x
  pin v[0] = x[1, 0:8]
  set sum = sum + reduce.add(v[0])
  fence x
  pin v[0] = x[2, 0:8]
  set sum = sum + reduce.add(v[0])
  for k in 0..8 {
    set sum = sum * x[0, k]
  }
  y[1] = sum
  let sum1: f32 = 0.0
  fence x
  pin v[0] = x[2, 0:8]
  set sum1 = sum1 + reduce.add(v[0])
  for k in 0..8 {
    set sum1 = sum1 * x[2, k]
  }
  y[3] = sum1
}

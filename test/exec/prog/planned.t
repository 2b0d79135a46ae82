# A planned program: softmax in place, one arena, a view, places used twice.
# engines: interp watch c
# input x = f32[2,2] {0, 0, 1, 1}
# output y = f32[4] {0.5, 0.5, 0.5, 0.5}
prog planned
arena 192
buf x: in f32[2,2]
buf y: out f32[4]
buf e: temp f32[2,2] at 64
buf p: temp f32[2,2] at 64
buf s: temp f32[2] at 0
buf flat: temp f32[4] alias p
kernel "exp" {
  for i in 0..2 {
    for j in 0..2 {
      e[i, j] = exp(x[i, j])
    }
  }
}
kernel "sum" {
  for i in 0..2 {
    let sum: f32 = 0.0
    for j in 0..2 {
      set sum = sum + e[i, j]
    }
    s[i] = sum
  }
}
kernel "div" {
  for i in 0..2 {
    for j in 0..2 {
      p[i, j] = div(e[i, j], s[i])
    }
  }
}
kernel "copy" {
  for i in 0..4 {
    y[i] = flat[i]
  }
}

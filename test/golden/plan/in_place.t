# A map overwrites its dying operand, also row by row behind a reduction; not where it lives on, nor through another order.
# run: --start=plan
prog in_place
buf x: in f32[8,16]
buf y: out f32[16,8]
buf a: temp f32[8,16]
buf b: temp f32[8,16]
buf c: temp f32[8,16]
buf d: temp f32[8,16]
buf e: temp f32[16,8]
kernel "a" {
  for i in 0..8 {
    for j in 0..16 {
      a[i, j] = x[i, j]
    }
  }
}
kernel "map" {
  for i in 0..8 {
    for j in 0..16 {
      b[i, j] = exp(a[i, j])
    }
  }
}
kernel "rows" {
  for i in 0..8 {
    let m: f32 = -inf
    for j in 0..16 {
      set m = max(m, b[i, j])
    }
    for k in 0..16 {
      c[i, k] = b[i, k] - m
    }
  }
}
kernel "shifted: not in place" {
  for i in 0..8 {
    for j in 0..16 {
      d[i, j] = c[i, 15 - j]
    }
  }
}
kernel "transposed: not in place" {
  for i in 0..16 {
    for j in 0..8 {
      e[i, j] = d[j, i]
    }
  }
}
kernel "y" {
  for i in 0..16 {
    for j in 0..8 {
      y[i, j] = e[i, j]
    }
  }
}

# expect
ingot 2
prog in_place
arena 1024
buf x: in f32[8,16]
buf y: out f32[16,8]
buf a: temp f32[8,16] at 0
buf b: temp f32[8,16] at 0
buf c: temp f32[8,16] at 0
buf d: temp f32[8,16] at 512
buf e: temp f32[16,8] at 0
kernel "a" {
  for i in 0..8 {
    for j in 0..16 {
      a[i, j] = x[i, j]
    }
  }
}
kernel "map" {
  for i in 0..8 {
    for j in 0..16 {
      b[i, j] = exp(a[i, j])
    }
  }
}
kernel "rows" {
  for i in 0..8 {
    let m: f32 = -inf
    for j in 0..16 {
      set m = max(m, b[i, j])
    }
    for k in 0..16 {
      c[i, k] = b[i, k] - m
    }
  }
}
kernel "shifted: not in place" {
  for i in 0..8 {
    for j in 0..16 {
      d[i, j] = c[i, 15 - j]
    }
  }
}
kernel "transposed: not in place" {
  for i in 0..16 {
    for j in 0..8 {
      e[i, j] = d[j, i]
    }
  }
}
kernel "y" {
  for i in 0..16 {
    for j in 0..8 {
      y[i, j] = e[i, j]
    }
  }
}

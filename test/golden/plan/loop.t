# In a loop: s is carried, so nothing else lies there; t and u are written before they are read, so they may share; p is
# written in parts, but all of it; q is only half written, so its other half is carried.
# run: --start=plan
prog loop
buf x: in f32[32]
buf n: in i64[]
buf y: out f32[32]
buf s: temp f32[32]
buf t: temp f32[32]
buf u: temp f32[32]
buf p: temp f32[32]
buf q: temp f32[32]
kernel "s" {
  for i in 0..32 {
    s[i] = x[i]
  }
}
let k: i64 = 0
while k < n[] {
  kernel "t" {
    for i in 0..32 {
      t[i] = s[31 - i]
    }
  }
  kernel "u" {
    for i in 0..32 {
      u[i] = t[31 - i]
    }
  }
  kernel "p" {
    for i in 0..20 {
      p[i] = u[31 - i]
    }
    for i in 0..12 {
      p[i + 20] = u[i]
    }
  }
  kernel "q" {
    for i in 0..16 {
      q[i + 16] = p[31 - i]
    }
  }
  kernel "s" {
    for i in 0..32 {
      s[i] = q[31 - i]
    }
    for i in 0..16 {
      q[i] = 1.0
    }
  }
  set k = k + 1
}
kernel "y" {
  for i in 0..32 {
    y[i] = s[i]
  }
}

# expect
ingot 2
prog loop
arena 512
buf x: in f32[32]
buf n: in i64[]
buf y: out f32[32]
buf s: temp f32[32] at 0
buf t: temp f32[32] at 256
buf u: temp f32[32] at 384
buf p: temp f32[32] at 256
buf q: temp f32[32] at 128
kernel "s" {
  for i in 0..32 {
    s[i] = x[i]
  }
}
let k: i64 = 0
while k < n[] {
  kernel "t" {
    for i in 0..32 {
      t[i] = s[31 - i]
    }
  }
  kernel "u" {
    for i in 0..32 {
      u[i] = t[31 - i]
    }
  }
  kernel "p" {
    for i in 0..20 {
      p[i] = u[31 - i]
    }
    for i in 0..12 {
      p[i + 20] = u[i]
    }
  }
  kernel "q" {
    for i in 0..16 {
      q[i + 16] = p[31 - i]
    }
  }
  kernel "s" {
    for i in 0..32 {
      s[i] = q[31 - i]
    }
    for i in 0..16 {
      q[i] = 1.0
    }
  }
  set k = k + 1
}
kernel "y" {
  for i in 0..32 {
    y[i] = s[i]
  }
}

# A symbolic dimension counts with its bound; a bool takes a byte.
# run: --start=plan
prog symbols
sym n in 1..100
buf x: in f32[n]
buf y: out f32[n]
buf a: temp bool[n]
buf b: temp f32[n,3]
kernel "a" {
  for i in 0..n {
    a[i] = x[i] > 0.0
  }
}
kernel "b" {
  for i in 0..n {
    for k in 0..3 {
      b[i, k] = select(a[i], x[i], 0.0)
    }
  }
}
kernel "y" {
  for i in 0..n {
    y[i] = b[i, 2]
  }
}

# expect
ingot 2
prog symbols
sym n in 1..100
arena 1344
buf x: in f32[n]
buf y: out f32[n]
buf a: temp bool[n] at 1216
buf b: temp f32[n,3] at 0
kernel "a" {
  for i in 0..n {
    a[i] = x[i] > 0.0
  }
}
kernel "b" {
  for i in 0..n {
    for k in 0..3 {
      b[i, k] = select(a[i], x[i], 0.0)
    }
  }
}
kernel "y" {
  for i in 0..n {
    y[i] = b[i, 2]
  }
}

# Without a bound there is no plan; the interpreter makes do without.
# run: --start=plan
prog unbounded
sym n in 1..
buf x: in f32[n]
buf y: out f32[n]
buf a: temp f32[n]
kernel "a" {
  for i in 0..n {
    a[i] = x[i]
  }
}
kernel "y" {
  for i in 0..n {
    y[i] = a[i]
  }
}

# expect
ingot 2
prog unbounded
sym n in 1..
buf x: in f32[n]
buf y: out f32[n]
buf a: temp f32[n]
kernel "a" {
  for i in 0..n {
    a[i] = x[i]
  }
}
kernel "y" {
  for i in 0..n {
    y[i] = a[i]
  }
}

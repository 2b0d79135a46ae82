# a state that is updated element by element is computed where it lies; one that is read afterwards, or turned round, is copied
# run: --stop=inplace
graph (%x "x": f32[4], %a "a": f32[4], %b "b": f32[4], %c "c": f32[2,2]) {
  %p: f32[4] = add(%a, %x)
  %q: f32[4] = mul(%b, %x)
  %r: f32[4] = reshape(%c) {shape = [4]}
  %y: f32[4] = add(%q, %r)
  %z: f32[] = reduce_sum(%b) {axes = [0], keep = 0}
  %t: f32[2,2] = transpose(%c) {perm = [1,0]}
  return %y "y", %z "z", %p "p" next %a, %q "q" next %b, %t "t" next %c
}

# expect
ingot 2
prog
buf a: state f32[4]
buf b: state f32[4]
buf c: state f32[2,2]
buf x: in f32[4]
buf y: out f32[4]
buf z: out f32[]
buf b8: temp f32[4]
buf b9: temp f32[4] alias c
buf b10: temp f32[2,2]
kernel "add"
    as plain out a ns 4 reason "the target has no vectors" {
  for i in 0..4 as batch {
    a[i] = a[i] + x[i]
  }
}
kernel "mul"
    as plain out b8 ns 4 reason "the target has no vectors" {
  for i in 0..4 as batch {
    b8[i] = b[i] * x[i]
  }
}
kernel "add"
    as plain out y ns 4 reason "the target has no vectors" {
  for i in 0..4 as batch {
    y[i] = b8[i] + b9[i]
  }
}
kernel "reduce_sum"
    as plain sum f32 of f32 out z ns 3 reason "the target has no vectors" {
  let acc: f32 = 0.0
  for i in 0..4 as reduce {
    set acc = acc + b[i]
  }
  z[] = acc
}
kernel "transpose"
    as plain out b10 ns 3 reason "the target has no vectors" {
  for i in 0..2 as batch {
    for j in 0..2 as batch {
      b10[i, j] = c[j, i]
    }
  }
}
kernel "copy"
    as plain out b ns 2 reason "the target has no vectors" {
  for i in 0..4 as batch {
    b[i] = b8[i]
  }
}
kernel "copy"
    as plain out c ns 3 reason "the target has no vectors" {
  for i in 0..2 as batch {
    for j in 0..2 as batch {
      c[i, j] = b10[i, j]
    }
  }
}

# Blocks run where they stand; carried values live in the results of the loop.
# run: --start=lower --stop=lower
graph (%x "x": f32[3], %c "c": bool[]) {
  %n: i64[] = const {4}
  %t: bool[] = const {true}
  %y: f32[3], %s: f32[4,3] = loop(%n, %t, %x) {scans = 1} (%i: i64[], %g: bool[], %p: f32[3]) {
    %q: f32[3] = if(%c) {
      %d: f32[3] = add(%p, %p)
      return %d
    } else {
      return %x
    }
    return %g, %q, %p
  }
  return %y "y", %s "s"
}

# expect
ingot 2
prog
buf x: in f32[3]
buf c: in bool[]
buf y: out f32[3]
buf s: out f32[4,3]
buf b7: temp i64[]
buf b8: temp bool[]
buf b9: temp f32[3]
buf b10: temp f32[3]
kernel "copy"
    as plain out y ns 2 reason "the target has no vectors" {
  for i in 0..3 as batch {
    y[i] = x[i]
  }
}
let iter: i64 = 0
while iter < 4 {
  b7[] = iter
  b8[] = true
  if c[] {
    kernel "add"
        as plain out b10 ns 3 reason "the target has no vectors" {
      for i in 0..3 as batch {
        b10[i] = y[i] + y[i]
      }
    }
    kernel "copy"
        as plain out b9 ns 2 reason "the target has no vectors" {
      for i in 0..3 as batch {
        b9[i] = b10[i]
      }
    }
  } else {
    kernel "copy"
        as plain out b9 ns 2 reason "the target has no vectors" {
      for i in 0..3 as batch {
        b9[i] = x[i]
      }
    }
  }
  kernel "append"
      as indexed ns 2 {
    for i in 0..3 as batch {
      s[iter, i] = y[i]
    }
  }
  kernel "copy"
      as plain out y ns 2 reason "the target has no vectors" {
    for i in 0..3 as batch {
      y[i] = b9[i]
    }
  }
  set iter = iter + 1
}

# a chain of transposing products over a batch of at most one: merged in pairs, for in one loop all of it is needed at a time
# run: --start=fuse --stop=loop_fuse
graph
sym n in 0..1
(%x: f32[n,64,64], %w: f32[64,64]) {
  %a: f32[n,64,64] = contract(%x, %w) {spec="bij,jk->bki"}
  %b: f32[n,64,64] = contract(%a, %w) {spec="bij,jk->bki"}
  %c: f32[n,64,64] = contract(%b, %w) {spec="bij,jk->bki"}
  %d: f32[n,64,64] = contract(%c, %w) {spec="bij,jk->bki"}
  %e: f32[n,64,64] = contract(%d, %w) {spec="bij,jk->bki"}
  return %e
}

# expect
ingot 2
prog
sym n in 0..1
buf b1: in f32[n,64,64]
buf b2: in f32[64,64]
buf b3: out f32[n,64,64]
buf b4: temp f32[1,64,64]
buf b5: temp f32[n,64,64]
buf b6: temp f32[n,64,64]
buf b7: temp f32[1,64,64]
kernel "contract"
    as plain sum f32 of f32, f32 out b4 ns 305411 reason "the target has no vectors; a step costs 5.5 along the reduction, 6.9 along a row"
    as plain sum f32 of f32, f32 out b5 ns 305411 reason "the target has no vectors; a step costs 5.5 along the reduction, 6.9 along a row" {
  for i in 0..n as batch 0 {
    for j in 0..64 as batch {
      for k in 0..64 as batch {
        let acc: f32 = 0.0
        for l in 0..64 as reduce {
          set acc = acc + b1[i, k, l] * b2[l, j]
        }
        b4[0, j, k] = acc
      }
    }
    for j in 0..64 as batch 2 {
      for k in 0..64 as batch 2 {
        let acc: f32 = 0.0
        for l in 0..64 as reduce 2 {
          set acc = acc + b4[0, k, l] * b2[l, j]
        }
        b5[i, j, k] = acc
      }
    }
  }
}
kernel "contract"
    as plain sum f32 of f32, f32 out b6 ns 305411 reason "the target has no vectors; a step costs 5.5 along the reduction, 6.9 along a row" {
  for i in 0..n as batch {
    for j in 0..64 as batch {
      for k in 0..64 as batch {
        let acc: f32 = 0.0
        for l in 0..64 as reduce {
          set acc = acc + b5[i, k, l] * b2[l, j]
        }
        b6[i, j, k] = acc
      }
    }
  }
}
kernel "contract"
    as plain sum f32 of f32, f32 out b7 ns 305411 reason "the target has no vectors; a step costs 5.5 along the reduction, 6.9 along a row"
    as plain sum f32 of f32, f32 out b3 ns 305411 reason "the target has no vectors; a step costs 5.5 along the reduction, 6.9 along a row" {
  for i in 0..n as batch 0 {
    for j in 0..64 as batch {
      for k in 0..64 as batch {
        let acc: f32 = 0.0
        for l in 0..64 as reduce {
          set acc = acc + b6[i, k, l] * b2[l, j]
        }
        b7[0, j, k] = acc
      }
    }
    for j in 0..64 as batch 2 {
      for k in 0..64 as batch 2 {
        let acc: f32 = 0.0
        for l in 0..64 as reduce 2 {
          set acc = acc + b7[0, k, l] * b2[l, j]
        }
        b3[i, j, k] = acc
      }
    }
  }
}

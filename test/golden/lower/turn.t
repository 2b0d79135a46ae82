# a transpose in tiles that are turned round in registers, and a rest along either axis
# run: --march=sse2 --start=layout --stop=lower
graph
(%x: f32[9,6]) {
  %t: f32[6,9] = transpose(%x) {perm=[1,0]}
  return %t
}

# expect
ingot 2
prog
math fast
buf b1: in f32[9,6]
buf b2: out f32[6,9]
buf tile: local f32[16,4]
buf tile1: local f32[16,4]
kernel "transpose"
    as transpose out b2 ns 17 reason "6 contiguous elements are read, 9 are stored" {
  for r in 0..2 {
    let t: f32x4 = b1[r * 4, 0:4]
    let t1: f32x4 = b1[r * 4 + 1, 0:4]
    let t2: f32x4 = b1[r * 4 + 2, 0:4]
    let t3: f32x4 = b1[r * 4 + 3, 0:4]
    let t4: f32x4 = shuffle.0.1.4.5(t, t2)
    let t5: f32x4 = shuffle.2.3.6.7(t, t2)
    let t6: f32x4 = shuffle.0.1.4.5(t1, t3)
    let t7: f32x4 = shuffle.2.3.6.7(t1, t3)
    let t8: f32x4 = shuffle.0.4.2.6(t4, t6)
    let t9: f32x4 = shuffle.1.5.3.7(t4, t6)
    let t10: f32x4 = shuffle.0.4.2.6(t5, t7)
    let t11: f32x4 = shuffle.1.5.3.7(t5, t7)
    b2[0, r * 4:4] = t8
    b2[1, r * 4:4] = t9
    b2[2, r * 4:4] = t10
    b2[3, r * 4:4] = t11
  }
  for e in 0..1 {
    tile[e, 0:4] = b1[8 + e, 0:4]
  }
  for c in 0..4 {
    for e in 0..1 {
      b2[c, 8 + e] = tile[e, c]
    }
  }
  for r in 0..2 {
    let t: f32x4 = b1[r * 4, 2:4]
    let t1: f32x4 = b1[r * 4 + 1, 2:4]
    let t2: f32x4 = b1[r * 4 + 2, 2:4]
    let t3: f32x4 = b1[r * 4 + 3, 2:4]
    let t4: f32x4 = shuffle.0.1.4.5(t, t2)
    let t5: f32x4 = shuffle.2.3.6.7(t, t2)
    let t6: f32x4 = shuffle.0.1.4.5(t1, t3)
    let t7: f32x4 = shuffle.2.3.6.7(t1, t3)
    let t8: f32x4 = shuffle.0.4.2.6(t4, t6)
    let t9: f32x4 = shuffle.1.5.3.7(t4, t6)
    let t10: f32x4 = shuffle.0.4.2.6(t5, t7)
    let t11: f32x4 = shuffle.1.5.3.7(t5, t7)
    b2[4, r * 4:4] = t10
    b2[5, r * 4:4] = t11
  }
  for e in 0..1 {
    tile1[e, 0:4] = b1[8 + e, 2:4]
  }
  for c in 2..4 {
    for e in 0..1 {
      b2[2 + c, 8 + e] = tile1[e, c]
    }
  }
}

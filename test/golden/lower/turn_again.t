# i32 is turned round in registers; what fills no tile along the axis of the operand, 2 of 6, is the end of a tile that stores only these
# run: --start=lower --stop=lower --march sse2
graph (%x: i32[8,6]) {
  %1: i32[6,8] = transpose(%x) {perm=[1,0]}
  return %1
}

# expect
ingot 2
prog
math fast
buf b1: in i32[8,6]
buf b2: out i32[6,8]
kernel "transpose"
    as transpose out b2 ns 12 reason "6 contiguous elements are read, 8 are stored" {
  for r in 0..2 {
    let t: i32x4 = b1[r * 4, 0:4]
    let t1: i32x4 = b1[r * 4 + 1, 0:4]
    let t2: i32x4 = b1[r * 4 + 2, 0:4]
    let t3: i32x4 = b1[r * 4 + 3, 0:4]
    let t4: i32x4 = shuffle.0.1.4.5(t, t2)
    let t5: i32x4 = shuffle.2.3.6.7(t, t2)
    let t6: i32x4 = shuffle.0.1.4.5(t1, t3)
    let t7: i32x4 = shuffle.2.3.6.7(t1, t3)
    let t8: i32x4 = shuffle.0.4.2.6(t4, t6)
    let t9: i32x4 = shuffle.1.5.3.7(t4, t6)
    let t10: i32x4 = shuffle.0.4.2.6(t5, t7)
    let t11: i32x4 = shuffle.1.5.3.7(t5, t7)
    b2[0, r * 4:4] = t8
    b2[1, r * 4:4] = t9
    b2[2, r * 4:4] = t10
    b2[3, r * 4:4] = t11
  }
  for r in 0..2 {
    let t: i32x4 = b1[r * 4, 2:4]
    let t1: i32x4 = b1[r * 4 + 1, 2:4]
    let t2: i32x4 = b1[r * 4 + 2, 2:4]
    let t3: i32x4 = b1[r * 4 + 3, 2:4]
    let t4: i32x4 = shuffle.0.1.4.5(t, t2)
    let t5: i32x4 = shuffle.2.3.6.7(t, t2)
    let t6: i32x4 = shuffle.0.1.4.5(t1, t3)
    let t7: i32x4 = shuffle.2.3.6.7(t1, t3)
    let t8: i32x4 = shuffle.0.4.2.6(t4, t6)
    let t9: i32x4 = shuffle.1.5.3.7(t4, t6)
    let t10: i32x4 = shuffle.0.4.2.6(t5, t7)
    let t11: i32x4 = shuffle.1.5.3.7(t5, t7)
    b2[4, r * 4:4] = t10
    b2[5, r * 4:4] = t11
  }
}

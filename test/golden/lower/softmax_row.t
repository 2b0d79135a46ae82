# what is at most 0 has its own exp; the end of a row that fills no vector is folded as the end of one that overlaps, and made as one
# run: --march avx2 --start=fuse --stop=loop_fuse
graph (%x: f32[2,30]) {
  %top: f32[2,1] = reduce_max(%x) {axes=[1], keep=1}
  %d: f32[2,30] = sub(%x, %top)
  %e: f32[2,30] = exp(%d)
  %s: f32[2,1] = reduce_sum(%e) {axes=[1], keep=1}
  %y: f32[2,30] = div(%e, %s)
  return %y
}

# expect
ingot 2
prog
math fused
buf b1: in f32[2,30]
buf b2: out f32[2,30]
buf b3: temp f32[1,1]
buf acc: reg f32x8[1,3]
buf b6: temp f32[1,30]
buf b7: temp f32[1,1]
buf acc1: reg f32x8[1,3]
kernel "reduce_max_sub_exp_reduce_sum_div"
    as horizontal lanes 8 sum f32 of f32 out b3 ns 12 reason "of 30 elements"
    as map lanes 8 out b6 ns 32 reason "30 contiguous elements"
    as horizontal lanes 8 sum f32 of f32 out b7 ns 16 reason "of 30 elements"
    as map lanes 8 out b2 ns 11 reason "30 contiguous elements" {
  for i in 0..2 as batch 0 {
    for v in 0..3 as panel unroll {
      acc[0, v] = splat.8(-inf)
    }
    for v in 0..1 as reduce {
      for u in 0..3 unroll {
        acc[0, u] = max(acc[0, u], b1[i, v * 24 + u * 8:8])
      }
    }
    acc[0, 0] = max(acc[0, 0], b1[i, 22:8])
    let half: f32x8 = max(max(acc[0, 0], acc[0, 1]), acc[0, 2])
    let half1: f32x8 = max(half, shuffle.4.5.6.7.0.1.2.3(half))
    let half2: f32x8 = max(half1, shuffle.2.3.0.1.6.7.4.5(half1))
    let part: f32x8 = max(half2, shuffle.1.0.3.2.5.4.7.6(half2))
    b3[0, 0] = shuffle.0(part)
    for v in 0..3 as lane 2 {
      b6[0, v * 8:8] = exp_nonpos(b1[i, v * 8:8] - splat.8(b3[0, 0]))
    }
    b6[0, 24:4] = exp_nonpos(b1[i, 24:4] - splat.4(b3[0, 0]))
    b6[0, 26:4] = exp_nonpos(b1[i, 26:4] - splat.4(b3[0, 0]))
    for v in 0..3 as panel 3 unroll {
      acc1[0, v] = splat.8(0.0)
    }
    for v in 0..1 as reduce 3 {
      for u in 0..3 unroll {
        acc1[0, u] = acc1[0, u] + b6[0, v * 24 + u * 8:8]
      }
    }
    acc1[0, 0] = shuffle.8.9.2.3.4.5.6.7(acc1[0, 0] + b6[0, 22:8], acc1[0, 0])
    let half3: f32x8 = acc1[0, 0] + acc1[0, 1] + acc1[0, 2]
    let part1: f32x8 = half3 + shuffle.4.5.6.7.0.1.2.3(half3)
    b7[0, 0] = shuffle.0(part1) + shuffle.1(part1) + shuffle.2(part1) + shuffle.3(part1)
    for v in 0..3 as lane 4 {
      b2[i, v * 8:8] = div(b6[0, v * 8:8], splat.8(b7[0, 0]))
    }
    b2[i, 24:4] = div(b6[0, 24:4], splat.4(b7[0, 0]))
    b2[i, 26:4] = div(b6[0, 26:4], splat.4(b7[0, 0]))
  }
}

# attention over a cache that grows: blocks of keys, the largest score so far, no matrix of scores; the causal mask ends the loop
# run: --march sse2 --start=fuse --stop=lower
graph att
sym past in 0..100
(%q "q": f32[2,1,4], %ko "ko": f16[past,4], %vo "vo": f32[past,4], %kn "k": f16[1,4], %vn "v": f32[1,4]) {
  %k: f16[past+1,4] = concat(%ko, %kn) {axis=0}
  %v: f32[past+1,4] = concat(%vo, %vn) {axis=0}
  %kf: f32[past+1,4] = cast(%k) {to=f32}
  %s0: f32[2,1,past+1] = contract(%q, %kf) {spec="gld,sd->gls"}
  %scale: f32[] = const {0.5}
  %s1: f32[2,1,past+1] = mul(%s0, %scale)
  %j: i64[past+1] = iota {shape=[past+1], axis=0, to=i64}
  %p: i64[] = dims {shape=[past], to=i64, rank=0}
  %le: bool[past+1] = le(%j, %p)
  %low: f32[] = const {-inf}
  %s: f32[2,1,past+1] = select(%le, %s1, %low)
  %m: f32[2,1,1] = reduce_max(%s) {axes=[2], keep=1}
  %x: f32[2,1,past+1] = sub(%s, %m)
  %e: f32[2,1,past+1] = exp(%x)
  %sum: f32[2,1,1] = reduce_sum(%e) {axes=[2], keep=1}
  %w: f32[2,1,past+1] = div(%e, %sum)
  %y: f32[2,1,4] = contract(%w, %v) {spec="gls,sd->gld"}
  return %y "y", %k next %ko, %v next %vo
}

# expect
ingot 2
prog att
sym past data in 0..100
math fast
buf lengths: state i64[1]
buf ko: state f16[101,4]
buf vo: state f32[101,4]
buf q: in f32[2,1,4]
buf k: in f16[1,4]
buf v: in f32[1,4]
buf y: out f32[2,1,4]
buf b15: temp i64[]
buf largest: local f32[2,1]
buf total: local f32[2,1]
buf sums: local f32[2,4]
buf score: local f32[2,64]
buf shrink: local f32[2,1]
buf acc: reg f32x4[2,4]
buf top: reg f32x4[1,1]
buf sum: reg f32x4[1,1]
buf acc1: reg f32x4[2,1]
require lengths[0] >= 0 else "the state is full: past cannot grow"
require lengths[0] <= 100 else "the state is full: past cannot grow"
set past = lengths[0]
kernel "concat"
    as map lanes 4 reason "4 contiguous elements" {
  ko[past, 0:4] = k[0, 0:4]
}
kernel "concat"
    as map lanes 4 reason "4 contiguous elements" {
  vo[past, 0:4] = v[0, 0:4]
}
kernel "dims"
    as scalars {
  b15[] = past
}
kernel "contract"
    as attention lanes 4 ns 1141 size "of 2 rows and 4 lanes" reason "the number of keys is unknown" {
  for b in 0..1 as batch {
    let first: i64 = b * 2
    let count: i64 = min(2 - first, 2)
    for i in 0..count {
      largest[i, 0] = -inf
      total[i, 0] = 0.0
      for v in 0..1 {
        sums[i, v * 4:4] = splat.4(0.0)
      }
    }
    for k in 0..div(past + 64, 64) {
      let from: i64 = k * 64
      let to: i64 = min(from + 64, past + 1)
      for r in 0..div(count, 2) {
        let high: i64 = min(to, max(min(b15[], to - 1) + 1, from))
        let stop: i64 = high
        if stop > from {
          for g in 0..div(min(stop - from, 64) + 3, 4) {
            let first1: i64 = from + g * 4
            let key: i64 = min(first1, past)
            let key1: i64 = min(first1 + 1, past)
            let key2: i64 = min(first1 + 2, past)
            let key3: i64 = min(first1 + 3, past)
            acc[0, 0] = splat.4(0.0)
            acc[0, 1] = splat.4(0.0)
            acc[0, 2] = splat.4(0.0)
            acc[0, 3] = splat.4(0.0)
            acc[1, 0] = splat.4(0.0)
            acc[1, 1] = splat.4(0.0)
            acc[1, 2] = splat.4(0.0)
            acc[1, 3] = splat.4(0.0)
            for v in 0..1 {
              pin let q: f32x4 = q[first + r * 2, 0, v * 4:4]
              pin let q1: f32x4 = q[first + r * 2 + 1, 0, v * 4:4]
              pin let k1: f32x4 = cast.f32.sat(ko[key, v * 4:4])
              acc[0, 0] = acc[0, 0] + q * k1
              acc[1, 0] = acc[1, 0] + q1 * k1
              pin let k2: f32x4 = cast.f32.sat(ko[key1, v * 4:4])
              acc[0, 1] = acc[0, 1] + q * k2
              acc[1, 1] = acc[1, 1] + q1 * k2
              pin let k3: f32x4 = cast.f32.sat(ko[key2, v * 4:4])
              acc[0, 2] = acc[0, 2] + q * k3
              acc[1, 2] = acc[1, 2] + q1 * k3
              pin let k4: f32x4 = cast.f32.sat(ko[key3, v * 4:4])
              acc[0, 3] = acc[0, 3] + q * k4
              acc[1, 3] = acc[1, 3] + q1 * k4
            }
            let s: f32x4 = acc[0, 2]
            let s1: f32x4 = acc[0, 0]
            let s2: f32x4 = shuffle.0.1.4.5(s1, s) + shuffle.2.3.6.7(s1, s)
            let s3: f32x4 = acc[0, 3]
            let s4: f32x4 = acc[0, 1]
            let s5: f32x4 = shuffle.0.1.4.5(s4, s3) + shuffle.2.3.6.7(s4, s3)
            let s6: f32x4 = shuffle.0.4.2.6(s2, s5) + shuffle.1.5.3.7(s2, s5)
            let s7: f32x4 = acc[1, 2]
            let s8: f32x4 = acc[1, 0]
            let s9: f32x4 = shuffle.0.1.4.5(s8, s7) + shuffle.2.3.6.7(s8, s7)
            let s10: f32x4 = acc[1, 3]
            let s11: f32x4 = acc[1, 1]
            let s12: f32x4 = shuffle.0.1.4.5(s11, s10) + shuffle.2.3.6.7(s11, s10)
            let s13: f32x4 = shuffle.0.4.2.6(s9, s12) + shuffle.1.5.3.7(s9, s12)
            score[0, g * 4:4] = s6 * splat.4(0.5)
            score[1, g * 4:4] = s13 * splat.4(0.5)
          }
          for k1 in high - from..div(min(stop - from, 64) + 3, 4) * 4 {
            score[0, k1] = -inf
          }
          for k1 in high - from..div(min(stop - from, 64) + 3, 4) * 4 {
            score[1, k1] = -inf
          }
          for r1 in 0..2 {
            top[0, 0] = splat.4(-inf)
            for g in 0..div(min(stop - from, 64) + 3, 4) {
              top[0, 0] = max(top[0, 0], score[r1, g * 4:4])
            }
            let half: f32x4 = top[0, 0]
            let half1: f32x4 = max(half, shuffle.2.3.0.1(half))
            let part: f32x4 = max(half1, shuffle.1.0.3.2(half1))
            let old: f32 = largest[r * 2 + r1, 0]
            let new: f32 = max(old, shuffle.0(part))
            let base: f32 = select(new == -inf, 0.0, new)
            let less: f32 = exp(old - base)
            largest[r * 2 + r1, 0] = new
            shrink[r1, 0] = less
            sum[0, 0] = splat.4(0.0)
            for g in 0..div(min(stop - from, 64) + 3, 4) {
              let weight: f32x4 = exp(score[r1, g * 4:4] - splat.4(base))
              score[r1, g * 4:4] = weight
              sum[0, 0] = sum[0, 0] + weight
            }
            let part1: f32x4 = sum[0, 0]
            total[r * 2 + r1, 0] = total[r * 2 + r1, 0] * less + (shuffle.0(part1) + shuffle.1(part1) + shuffle.2(part1) + shuffle.3(part1))
          }
          let less: f32 = shrink[0, 0]
          acc1[0, 0] = sums[r * 2, 0:4] * splat.4(less)
          let less1: f32 = shrink[1, 0]
          acc1[1, 0] = sums[r * 2 + 1, 0:4] * splat.4(less1)
          for k1 in 0..min(stop - from, 64) {
            pin let b1: f32x4 = vo[from + k1, 0:4]
            let w: f32x4 = splat.4(score[0, k1])
            acc1[0, 0] = acc1[0, 0] + w * b1
            let w1: f32x4 = splat.4(score[1, k1])
            acc1[1, 0] = acc1[1, 0] + w1 * b1
          }
          sums[r * 2, 0:4] = acc1[0, 0]
          sums[r * 2 + 1, 0:4] = acc1[1, 0]
        }
      }
    }
    for i in 0..count {
      let by: f32 = recip(total[i, 0])
      for v in 0..1 {
        y[first + i, 0, v * 4:4] = sums[i, v * 4:4] * splat.4(by)
      }
    }
  }
}
kernel "state"
    as scalars {
  lengths[0] = past + 1
}

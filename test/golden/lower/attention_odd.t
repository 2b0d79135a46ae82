# a depth of three: keys and queries have plain parts, the rest has vectors
# run: --march sse2 --start=fuse --stop=lower
graph att
sym n in 1..100
(%q "q": f32[2,3], %k "k": f32[n,3], %v "v": f32[n,4], %at "at": i64[2,1]) {
  %s0: f32[2,n] = contract(%q, %k) {spec="ld,sd->ls"}
  %j: i64[n] = iota {shape=[n], axis=0, to=i64}
  %le: bool[2,n] = le(%j, %at)
  %low: f32[] = const {-inf}
  %s: f32[2,n] = select(%le, %s0, %low)
  %m: f32[2,1] = reduce_max(%s) {axes=[1], keep=1}
  %x: f32[2,n] = sub(%s, %m)
  %e: f32[2,n] = exp(%x)
  %sum: f32[2,1] = reduce_sum(%e) {axes=[1], keep=1}
  %w: f32[2,n] = div(%e, %sum)
  %y: f32[2,4] = contract(%w, %v) {spec="ls,sd->ld"}
  return %y "y"
}

# expect
ingot 2
prog att
sym n in 1..100
math fast
buf q: in f32[2,3]
buf k: in f32[n,3]
buf v: in f32[n,4]
buf at: in i64[2,1]
buf y: out f32[2,4]
buf largest: local f32[2,1]
buf total: local f32[2,1]
buf sums: local f32[2,4]
buf score: local f32[2,64]
buf shrink: local f32[2,1]
buf acc: reg f32x4[2,4]
buf top: reg f32x4[1,1]
buf sum: reg f32x4[1,1]
buf acc1: reg f32x4[2,1]
kernel "contract"
    as attention lanes 4 ns 2533 size "of 2 rows and 4 lanes" reason "the number of keys is unknown" {
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
    for k in 0..div(n + 63, 64) {
      let from: i64 = k * 64
      let to: i64 = min(from + 64, n)
      for r in 0..div(count, 2) {
        let high: i64 = min(to, max(min(at[first + r * 2, 0], to - 1) + 1, from))
        let high1: i64 = min(to, max(min(at[first + r * 2 + 1, 0], to - 1) + 1, from))
        let stop: i64 = max(high, high1)
        if stop > from {
          for g in 0..div(min(stop - from, 64) + 3, 4) {
            let first1: i64 = from + g * 4
            let key: i64 = min(first1, n - 1)
            let key1: i64 = min(first1 + 1, n - 1)
            let key2: i64 = min(first1 + 2, n - 1)
            let key3: i64 = min(first1 + 3, n - 1)
            acc[0, 0] = splat.4(0.0)
            acc[0, 1] = splat.4(0.0)
            acc[0, 2] = splat.4(0.0)
            acc[0, 3] = splat.4(0.0)
            acc[1, 0] = splat.4(0.0)
            acc[1, 1] = splat.4(0.0)
            acc[1, 2] = splat.4(0.0)
            acc[1, 3] = splat.4(0.0)
            for v in 0..0 {
              pin let q: f32x4 = q[first + r * 2, v * 4:4]
              pin let q1: f32x4 = q[first + r * 2 + 1, v * 4:4]
              pin let k1: f32x4 = k[key, v * 4:4]
              acc[0, 0] = acc[0, 0] + q * k1
              acc[1, 0] = acc[1, 0] + q1 * k1
              pin let k2: f32x4 = k[key1, v * 4:4]
              acc[0, 1] = acc[0, 1] + q * k2
              acc[1, 1] = acc[1, 1] + q1 * k2
              pin let k3: f32x4 = k[key2, v * 4:4]
              acc[0, 2] = acc[0, 2] + q * k3
              acc[1, 2] = acc[1, 2] + q1 * k3
              pin let k4: f32x4 = k[key3, v * 4:4]
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
            score[0, g * 4:4] = s6
            score[1, g * 4:4] = s13
          }
          for k1 in 0..min(stop - from, 64) {
            for d in 0..3 {
              score[0, k1] = score[0, k1] + q[first + r * 2, d] * k[from + k1, d]
            }
          }
          for k1 in 0..min(stop - from, 64) {
            for d in 0..3 {
              score[1, k1] = score[1, k1] + q[first + r * 2 + 1, d] * k[from + k1, d]
            }
          }
          for g in 0..div(min(stop - from, 64), 4) {
            score[0, g * 4:4] = score[0, g * 4:4]
          }
          for k1 in div(min(stop - from, 64), 4) * 4..min(stop - from, 64) {
            score[0, k1] = score[0, k1]
          }
          for g in 0..div(min(stop - from, 64), 4) {
            score[1, g * 4:4] = score[1, g * 4:4]
          }
          for k1 in div(min(stop - from, 64), 4) * 4..min(stop - from, 64) {
            score[1, k1] = score[1, k1]
          }
          for k1 in high - from..div(min(stop - from, 64) + 3, 4) * 4 {
            score[0, k1] = -inf
          }
          for k1 in high1 - from..div(min(stop - from, 64) + 3, 4) * 4 {
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
            pin let b1: f32x4 = v[from + k1, 0:4]
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
        y[first + i, v * 4:4] = sums[i, v * 4:4] * splat.4(by)
      }
    }
  }
}

# weights that something else needs: the steps are kernels of their own, and the mask is computed
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
  return %y "y", %w "w"
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
buf w: out f32[2,n]
buf b8: temp i64[n]
buf b11: temp f32[2,n]
buf b12: temp f32[2,1]
buf acc: reg f32x4[1,4]
buf sum: reg f32[1,1]
buf b16: temp f32[2,n]
buf b17: temp f32[2,1]
buf acc1: reg f32x4[1,4]
buf sum1: reg f32[1,1]
buf acc2: reg f32x4[2,1]
buf b: reg f32x4[1,1]
kernel "iota"
    as plain out b8 ns 32 reason "the target has no vectors of this type" {
  for i in 0..n as batch {
    b8[i] = i
  }
}
kernel "le_contract_select"
    as row_acc sum f32 of f32, f32 out b11 ns 1282 reason "the result is not contiguous along an axis of known extent; a step costs 18.0 along the reduction, 6.9 along a row" {
  for i in 0..2 as batch {
    for j in 0..n as batch {
      b11[i, j] = 0.0
    }
    for k in 0..3 as reduce {
      for j in 0..n as batch {
        b11[i, j] = b11[i, j] + q[i, k] * k[j, k]
      }
    }
    for j in 0..n as batch {
      b11[i, j] = select(b8[j] <= at[i, 0], b11[i, j], -inf)
    }
  }
}
kernel "reduce_max"
    as horizontal lanes 4 sum f32 of f32 out b12 ns 286 reason "of an unknown number elements" {
  for i in 0..2 as batch {
    for v in 0..4 as panel unroll {
      acc[0, v] = splat.4(-inf)
    }
    sum[0, 0] = -inf
    for v in 0..div(n, 16) as reduce {
      for u in 0..4 unroll {
        acc[0, u] = max(acc[0, u], b11[i, v * 16 + u * 4:4])
      }
    }
    for v in div(n, 16) * 4..div(n, 4) as reduce {
      acc[0, 0] = max(acc[0, 0], b11[i, v * 4:4])
    }
    for v in div(n, 4) * 4..n as reduce {
      sum[0, 0] = max(sum[0, 0], b11[i, v])
    }
    let half: f32x4 = max(max(max(acc[0, 0], acc[0, 1]), acc[0, 2]), acc[0, 3])
    let half1: f32x4 = max(half, shuffle.2.3.0.1(half))
    let part: f32x4 = max(half1, shuffle.1.0.3.2(half1))
    b12[i, 0] = max(shuffle.0(part), sum[0, 0])
  }
}
kernel "sub_exp"
    as map lanes 4 out b16 ns 1328 reason "an unknown number contiguous elements" {
  for i in 0..2 as batch {
    for v in 0..div(n, 4) as lane {
      b16[i, v * 4:4] = exp(b11[i, v * 4:4] - splat.4(b12[i, 0]))
    }
    for v in div(n, 4) * 4..n as lane {
      b16[i, v] = exp(b11[i, v] - b12[i, 0])
    }
  }
}
kernel "reduce_sum"
    as horizontal lanes 4 sum f32 of f32 out b17 ns 288 reason "of an unknown number elements" {
  for i in 0..2 as batch {
    for v in 0..4 as panel unroll {
      acc1[0, v] = splat.4(0.0)
    }
    sum1[0, 0] = 0.0
    for v in 0..div(n, 16) as reduce {
      for u in 0..4 unroll {
        acc1[0, u] = acc1[0, u] + b16[i, v * 16 + u * 4:4]
      }
    }
    for v in div(n, 16) * 4..div(n, 4) as reduce {
      acc1[0, 0] = acc1[0, 0] + b16[i, v * 4:4]
    }
    for v in div(n, 4) * 4..n as reduce {
      sum1[0, 0] = sum1[0, 0] + b16[i, v]
    }
    let part: f32x4 = acc1[0, 0] + acc1[0, 1] + acc1[0, 2] + acc1[0, 3]
    b17[i, 0] = shuffle.0(part) + shuffle.1(part) + shuffle.2(part) + shuffle.3(part) + sum1[0, 0]
  }
}
kernel "div"
    as map lanes 4 out w ns 410 reason "an unknown number contiguous elements" {
  for i in 0..2 as batch {
    for v in 0..div(n, 4) as lane {
      w[i, v * 4:4] = div(b16[i, v * 4:4], splat.4(b17[i, 0]))
    }
    for v in div(n, 4) * 4..n as lane {
      w[i, v] = div(b16[i, v], b17[i, 0])
    }
  }
}
kernel "contract"
    as outer_product rows 2 panels 1 lanes 4 sum f32 of f32, f32 out y ns 254 reason "2 rows share the vectors of the other, 2 of 12 registers are accumulators, 19% of the time is multiply-adds" {
  for p in 0..2 as row unroll {
    acc2[p, 0] = splat.4(0.0)
  }
  for k in 0..n as reduce {
    b[0, 0] = v[k, 0:4]
    for p in 0..2 as row unroll {
      let x: f32x4 = splat.4(w[p, k])
      acc2[p, 0] = acc2[p, 0] + x * b[0, 0]
    }
  }
  for p in 0..2 as row unroll {
    y[p, 0:4] = acc2[p, 0]
  }
}

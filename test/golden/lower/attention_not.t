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
kernel "iota" {
  for i in 0..n {
    b8[i] = i
  }
}
kernel "le_contract_select" {
  for i in 0..2 {
    for j in 0..n {
      b11[i, j] = 0.0
    }
    for k in 0..3 {
      for j in 0..n {
        b11[i, j] = b11[i, j] + q[i, k] * k[j, k]
      }
    }
    for j in 0..n {
      b11[i, j] = select(b8[j] <= at[i, 0], b11[i, j], -inf)
    }
  }
}
kernel "reduce_max" {
  for i in 0..2 {
    for v in 0..4 unroll {
      acc[0, v] = splat.4(-inf)
    }
    sum[0, 0] = -inf
    for v in 0..div(n, 16) {
      for u in 0..4 unroll {
        acc[0, u] = max(acc[0, u], b11[i, v * 16 + u * 4:4])
      }
    }
    for v in div(n, 16) * 4..div(n, 4) {
      acc[0, 0] = max(acc[0, 0], b11[i, v * 4:4])
    }
    for v in div(n, 4) * 4..n {
      sum[0, 0] = max(sum[0, 0], b11[i, v])
    }
    let half: f32x4 = max(max(max(acc[0, 0], acc[0, 1]), acc[0, 2]), acc[0, 3])
    let half1: f32x4 = max(half, shuffle.2.3.0.1(half))
    let part: f32x4 = max(half1, shuffle.1.0.3.2(half1))
    b12[i, 0] = max(shuffle.0(part), sum[0, 0])
  }
}
kernel "sub_exp" {
  for i in 0..2 {
    for v in 0..div(n, 4) {
      b16[i, v * 4:4] = exp(b11[i, v * 4:4] - splat.4(b12[i, 0]))
    }
    for v in div(n, 4) * 4..n {
      b16[i, v] = exp(b11[i, v] - b12[i, 0])
    }
  }
}
kernel "reduce_sum" {
  for i in 0..2 {
    for v in 0..4 unroll {
      acc1[0, v] = splat.4(0.0)
    }
    sum1[0, 0] = 0.0
    for v in 0..div(n, 16) {
      for u in 0..4 unroll {
        acc1[0, u] = acc1[0, u] + b16[i, v * 16 + u * 4:4]
      }
    }
    for v in div(n, 16) * 4..div(n, 4) {
      acc1[0, 0] = acc1[0, 0] + b16[i, v * 4:4]
    }
    for v in div(n, 4) * 4..n {
      sum1[0, 0] = sum1[0, 0] + b16[i, v]
    }
    let part: f32x4 = acc1[0, 0] + acc1[0, 1] + acc1[0, 2] + acc1[0, 3]
    b17[i, 0] = shuffle.0(part) + shuffle.1(part) + shuffle.2(part) + shuffle.3(part) + sum1[0, 0]
  }
}
kernel "div" {
  for i in 0..2 {
    for v in 0..div(n, 4) {
      w[i, v * 4:4] = div(b16[i, v * 4:4], splat.4(b17[i, 0]))
    }
    for v in div(n, 4) * 4..n {
      w[i, v] = div(b16[i, v], b17[i, 0])
    }
  }
}
kernel "contract" {
  for p in 0..2 unroll {
    acc2[p, 0] = splat.4(0.0)
  }
  for k in 0..n {
    b[0, 0] = v[k, 0:4]
    for p in 0..2 unroll {
      let x: f32x4 = splat.4(w[p, k])
      acc2[p, 0] = acc2[p, 0] + x * b[0, 0]
    }
  }
  for p in 0..2 unroll {
    y[p, 0:4] = acc2[p, 0]
  }
}

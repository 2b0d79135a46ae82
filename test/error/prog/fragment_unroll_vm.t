# the program is too long without loops
# run: run --engine vm --seed 1
# exit: 3
# expect-stderr: a kernel with fragments of integers must unroll to 1 to 20000 statements: expected fewer unrolled loops
prog p
buf x: in u8[32,64]
buf v: in i32[16,16]
buf y: out i32[16,16]
buf rows: local u8[32,64]
buf w: local i32[16,16]
buf sums: local i32[16,16]
buf acc: reg i32x16x16[]
buf a: reg i32x16x16[]
buf b: reg i32x16x16[]
kernel "product" {
  for i in 0..32 {
    rows[i, 0:64] = x[i, 0:64]
  }
  for i in 0..16 {
    w[i, 0:16] = v[i, 0:16]
  }
  let r: i64 = 0
  acc[] = splat.16x16(0:i32)
  a[] = quad(rows[r:16, 0:64])
  b[] = turn(w[0:16, 0:16])
  acc[] = mma(a[], b[], acc[])
  sums[0:16, 0:16] = acc[]
  for i in 0..300 unroll {
    for j in 0..300 unroll {
      rows[0, 0:64] = x[1, 0:64]
    }
  }
  for i in 0..16 {
    y[i, 0:16] = sums[i, 0:16]
  }
}

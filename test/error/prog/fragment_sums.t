# a product adds to the element that it stores
# run: opt --stop=none
# exit: 4
# expect-stderr: store to acc: expected zeros, quad, turn, or mma of registers that adds to the same element
prog p
buf y: out i32[16,16]
buf rows: local u8[16,64]
buf w: local i32[16,16]
buf acc: reg i32x16x16[2]
buf a: reg i32x16x16[]
buf b: reg i32x16x16[]
kernel "product" {
  acc[0] = splat.16x16(0:i32)
  a[] = quad(rows[0:16, 0:64])
  b[] = turn(w[0:16, 0:16])
  acc[1] = mma(a[], b[], acc[0])
  w[0:16, 0:16] = acc[1]
  y[0, 0:16] = w[0, 0:16]
}

# operands of products are loaded by quad and turn
# run: opt --stop=none
# exit: 4
# expect-stderr: :6: store to a: expected zeros, quad, turn, or mma of registers that adds to the same element
prog p
buf y: out i32[16,16]
buf rows: local i32[16,16]
buf a: reg i32x16x16[]
kernel "load" {
  a[] = rows[0:16, 0:16]
  rows[0:16, 0:16] = a[]
  y[0, 0:16] = rows[0, 0:16]
}

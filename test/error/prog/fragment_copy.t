# a matrix register stores to memory what a register buffer holds
# run: opt --stop=none
# exit: 4
# expect-stderr: :6: store to rows: expected a fragment of integers of a register buffer
prog p
buf x: in i32[16,16]
buf y: out i32[16,16]
buf rows: local i32[16,16]
kernel "copy" {
  rows[0:16, 0:16] = rows[0:16, 0:16]
  y[0, 0:16] = rows[0, 0:16]
}

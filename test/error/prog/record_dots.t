# a record of dot products that the kernel does not compute
# run: opt --stop=none
# exit: 4
# expect-stderr: record dot_i8x4: the kernel has no such dot product
prog
buf x: in i32[4]
buf y: out i32[]
kernel "sum"
    as dot_i8x4 sum i32 of i32 out y {
  let s: i32 = 0:i32
  for i in 0..4 as reduce {
    set s = s + x[i]
  }
  y[] = s
}

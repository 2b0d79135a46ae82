# matrix registers are numbered in register buffers
# run: opt --stop=none
# exit: 4
# expect-stderr: :4: variable f: fragments of integers are held by register buffers
prog p
buf y: out i32[]
kernel "k" {
  let f: i32x16x16 = splat.16x16(0:i32)
  y[] = 0:i32
}

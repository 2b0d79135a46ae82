# fragments belong to warps
# run: opt --stop=none
# exit: 4
# expect-stderr: a fragment is outside of a warp loop
prog p
threads 65536
buf y: out f32[1]
buf s: local f16[16,16]
kernel "block" {
  for t in 0..1 parallel {
    for i in 0..32 thread {
      let a: f16x16x16 = s[0:16, 0:16]
      y[0] = 1.0
    }
  }
}

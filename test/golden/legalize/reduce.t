# a reduction is lanes in order, also where it decides how long a loop runs
# run: --march=sse2 --start=legalize --stop=legalize
prog
buf x: in f32[8]
buf n: in i64[4]
buf y: out f32[2]
buf z: out f32[8]
kernel "sum" {
  y[0] = reduce.add(x[0:8])
  y[1] = reduce.max(x[0:4] * x[4:4])
}
kernel "until" {
  let i: i64 = 0
  while i < reduce.add(n[0:4]) {
    z[i] = 1.0
    set i = i + 1
  }
}

# expect
ingot 2
prog
buf x: in f32[8]
buf n: in i64[4]
buf y: out f32[2]
buf z: out f32[8]
kernel "sum" {
  let tmp_0: f32x4 = x[0:4]
  let tmp_1: f32x4 = x[4:4]
  y[0] = shuffle.0(tmp_0) + shuffle.1(tmp_0) + shuffle.2(tmp_0) + shuffle.3(tmp_0) + shuffle.0(tmp_1) + shuffle.1(tmp_1) + shuffle.2(tmp_1) + shuffle.3(tmp_1)
  let tmp: f32x4 = x[0:4] * x[4:4]
  y[1] = max(max(max(shuffle.0(tmp), shuffle.1(tmp)), shuffle.2(tmp)), shuffle.3(tmp))
}
kernel "until" {
  let i: i64 = 0
  let tmp_0: i64x2 = n[0:2]
  let tmp_1: i64x2 = n[2:2]
  let go: bool = i < shuffle.0(tmp_0) + shuffle.1(tmp_0) + shuffle.0(tmp_1) + shuffle.1(tmp_1)
  while go {
    z[i] = 1.0
    set i = i + 1
    let tmp_2: i64x2 = n[0:2]
    let tmp_3: i64x2 = n[2:2]
    set go = i < shuffle.0(tmp_2) + shuffle.1(tmp_2) + shuffle.0(tmp_3) + shuffle.1(tmp_3)
  }
}

# the mean of an image: its rows are one line, whatever is made of the sum
# run: --march=sse2 --start=fuse --stop=lower
graph
(%x: f32[1,6,3,3]) {
  %s: f32[1,6,1,1] = reduce_sum(%x) {axes=[2,3], keep=1}
  %n: f32[] = const {9}
  %m: f32[1,6,1,1] = div(%s, %n)
  return %m
}

# expect
ingot 2
prog
math fast
buf b1: in f32[1,6,3,3]
buf b2: out f32[1,6,1,1]
buf b1_view: temp f32[6,9] alias b1
buf acc: reg f32x4[1,2]
kernel "reduce_sum_div"
    as horizontal lanes 4 sum f32 of f32 out b2 ns 44 reason "of 9 elements" {
  for j in 0..6 as batch {
    for v in 0..2 as panel unroll {
      acc[0, v] = splat.4(0.0)
    }
    for v in 0..1 as reduce {
      for u in 0..2 unroll {
        acc[0, u] = acc[0, u] + b1_view[j, v * 8 + u * 4:4]
      }
    }
    acc[0, 0] = shuffle.4.5.6.3(acc[0, 0] + b1_view[j, 5:4], acc[0, 0])
    let part: f32x4 = acc[0, 0] + acc[0, 1]
    b2[0, j, 0, 0] = div(shuffle.0(part) + shuffle.1(part) + shuffle.2(part) + shuffle.3(part), 9.0)
  }
}

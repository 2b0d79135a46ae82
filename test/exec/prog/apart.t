# One index moves with the loop and a constant, the other comes from data.
# engines: interp vm c
# input x = f32[5,3] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
# input k = i64[4] {1, 5, 6, -1}
# output y = f32[4] {13, 11, 6, 5}
prog p
buf x: in f32[5,3]
buf k: in i64[4]
buf y: out f32[4]
for i in 0..4 {
  y[i] = x[4 - i, mod(k[i], 3)]
}

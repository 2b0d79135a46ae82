# Roles that do not describe a tile: two row loops, an empty one, a panel loop without the sum, a register
# that is loaded twice, an index that changes in the body. No engine may take the loops for a tile.
# input x = f32[4,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
# input w = f32[3,8] {-2, -1, 0, 1, 2, -2, -1, 0, 1, 2, -2, -1, 0, 1, 2, -2, -1, 0, 1, 2, -2, -1, 0, 1}
# input v = f32[3,8] {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}
# output squares = f32[4,8] {-3, 3, -1, 5, -4, -3, 3, -1, -9, 6, -4, 11, -4, -9, 6, -4, -15, 9, -7, 17, -4, -15, 9, -7, -21, 12, -10, 23, -4, -21, 12, -10}
# output none = f32[4,8] {-2, -1, 0, 1, 2, -2, -1, 0, -8, -4, 0, 4, 8, -8, -4, 0, -14, -7, 0, 7, 14, -14, -7, 0, -20, -10, 0, 10, 20, -20, -10, 0}
# output loads = f32[4,8] {-3, 3, -1, 5, -4, -3, 3, -1, -9, 6, -4, 11, -4, -9, 6, -4, -15, 9, -7, 17, -4, -15, 9, -7, -21, 12, -10, 23, -4, -21, 12, -10}
# output twice = f32[4,8] {13, 13, 10, 13, 13, 10, 13, 13, 31, 31, 28, 31, 31, 28, 31, 31, 49, 49, 46, 49, 49, 46, 49, 49, 67, 67, 64, 67, 67, 64, 67, 67}
# output index = f32[4,8] {-2, 4, -5, 1, 2, -2, 4, -5, -8, 7, -8, 7, 2, -8, 7, -8, -14, 10, -11, 13, 2, -14, 10, -11, -20, 13, -14, 19, 2, -20, 13, -14}
prog roles
buf x: in f32[4,3]
buf w: in f32[3,8]
buf v: in f32[3,8]
buf t: const i64[3] = {2, 0, 1}
buf squares: out f32[4,8]
buf none: out f32[4,8]
buf loads: out f32[4,8]
buf twice: out f32[4,8]
buf index: out f32[4,8]
buf squares_acc: reg f32x8[4]
buf none_acc: reg f32x8[4]
buf loads_acc: reg f32x8[4]
buf loads_b: reg f32x8[3]
buf twice_acc: reg f32x8[4]
buf twice_b: reg f32x8[3]
buf index_acc: reg f32x8[4]
kernel "squares"
    as outer_product {
  for r in 0..4 unroll {
    squares_acc[r] = splat.8(0.0)
  }
  for k in 0..3 as reduce {
    for p in 0..2 as row unroll {
      for q in 0..2 as row unroll {
        squares_acc[p * 2 + q] = squares_acc[p * 2 + q] + splat.8(x[p * 2 + q, k]) * w[k, 0:8]
      }
    }
  }
  for p in 0..4 as row unroll {
    squares[p, 0:8] = squares_acc[p]
  }
}
kernel "none"
    as outer_product {
  for r in 0..4 unroll {
    none_acc[r] = splat.8(0.0)
  }
  for k in 0..3 as reduce {
    for p in 0..0 as row unroll {
      none_acc[p] = none_acc[p] + splat.8(x[p, k]) * w[k, 0:8]
    }
  }
  for p in 0..4 as row unroll {
    none[p, 0:8] = none_acc[p] + splat.8(x[p, 0]) * w[0, 0:8]
  }
}
kernel "loads"
    as outer_product {
  for r in 0..4 unroll {
    loads_acc[r] = splat.8(0.0)
  }
  for k in 0..3 as reduce {
    for j in 0..3 as panel unroll {
      loads_b[j] = w[k, 0:8]
    }
    for p in 0..4 as row unroll {
      loads_acc[p] = loads_acc[p] + splat.8(x[p, k]) * w[k, 0:8]
    }
  }
  for p in 0..4 as row unroll {
    loads[p, 0:8] = loads_acc[p] + splat.8(0.0) * loads_b[2]
  }
}
kernel "twice"
    as outer_product {
  for r in 0..4 unroll {
    twice_acc[r] = splat.8(0.0)
  }
  for k in 0..3 as reduce {
    twice_b[0] = w[k, 0:8]
    twice_b[0] = v[k, 0:8]
    for p in 0..4 as row unroll {
      twice_acc[p] = twice_acc[p] + splat.8(x[p, k]) * twice_b[0]
    }
  }
  for p in 0..4 as row unroll {
    twice[p, 0:8] = twice_acc[p]
  }
}
kernel "index"
    as outer_product {
  for r in 0..4 unroll {
    index_acc[r] = splat.8(0.0)
  }
  for k in 0..3 as reduce {
    let at: i64 = t[k]
    for p in 0..4 as row unroll {
      index_acc[p] = index_acc[p] + splat.8(x[p, k]) * w[at, 0:8]
    }
  }
  for p in 0..4 as row unroll {
    index[p, 0:8] = index_acc[p]
  }
}

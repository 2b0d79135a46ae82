# A loop that moves every element on its own becomes a walk: twelve rows side by side, then what is left along the last axis. Indices are
# not clamped: the tables say where they can lead.
# run: --march avx2 --start=lower --stop=lower
graph sym n in 1..100 (%x "x": f32[n,3]) {
  %rounds: i64[] = const {9}
  %yes: bool[] = const {true}
  %roots: i64[13] = const {0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0}
  %start: i64[n,13] = broadcast(%roots) {shape=[n,13]}
  %feature: i64[7] = const {0, 2, 2, 1, 2, 2, 0}
  %limit: f32[7] = const {0.5, inf, inf, -1, inf, inf, 0}
  %first: i64[7] = const {1, 1, 2, 4, 4, 5, 0}
  %end: i64[n,13] = loop(%rounds, %yes, %start) {scans=0} (%i: i64[], %c: bool[], %at: i64[n,13]) {
    %f: i64[n,13] = gather(%feature, %at) {axis=0}
    %v: f32[n,13] = gather_elems(%x, %f) {axis=1}
    %l: f32[n,13] = gather(%limit, %at) {axis=0}
    %less: bool[n,13] = le(%v, %l)
    %more: bool[n,13] = not(%less)
    %by: i64[n,13] = cast(%more) {to=i64}
    %to: i64[n,13] = gather(%first, %at) {axis=0}
    %next: i64[n,13] = add(%to, %by)
    return %c, %next
  }
  return %end "y"
}

# expect
ingot 2
prog
sym n in 1..100
math fused
buf x: in f32[n,3]
buf y: out i64[n,13]
buf b5: const i64[13] = {0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0}
buf b6: temp i64[n,13]
buf b7: const i64[7] = {0, 2, 2, 1, 2, 2, 0}
buf b8: const f32[7] = {0.5, inf, inf, -1, inf, inf, 0}
buf b9: const i64[7] = {1, 1, 2, 4, 4, 5, 0}
buf walk: reg i64[12]
buf walk1: reg i64[12]
kernel "broadcast"
    as plain out b6 ns 748 reason "the target has no vectors of this type" {
  for i in 0..n as batch {
    for j in 0..13 as batch {
      b6[i, j] = b5[j]
    }
  }
}
kernel "loop"
    as tree_walk ns 225063 size "of 12 interleaved" {
  for j in 0..13 as batch {
    for i in 0..div(n, 12) as batch {
      for g in 0..12 unroll {
        walk[g] = b6[i * 12 + g, j]
      }
      let round: i64 = 0
      let moved: i64 = 1
      while and(round < 9, moved != 0) {
        set moved = 0
        for g in 0..12 unroll {
          let next: i64 = b9[walk[g]] + cast.i64(not(x[i * 12 + g, b7[walk[g]]] <= b8[walk[g]]))
          set moved = or(moved, xor(next, walk[g]))
          walk[g] = next
        }
        set round = round + 1
      }
      for g in 0..12 unroll {
        y[i * 12 + g, j] = walk[g]
      }
    }
  }
}
kernel "loop"
    as tree_walk ns 236408 size "of 12 interleaved" {
  for i in 0..n - div(n, 12) * 12 as batch {
    for g in 0..12 unroll {
      walk1[g] = b6[i + div(n, 12) * 12, g]
    }
    let round: i64 = 0
    let moved: i64 = 1
    while and(round < 9, moved != 0) {
      set moved = 0
      for g in 0..12 unroll {
        let next: i64 = b9[walk1[g]] + cast.i64(not(x[i + div(n, 12) * 12, b7[walk1[g]]] <= b8[walk1[g]]))
        set moved = or(moved, xor(next, walk1[g]))
        walk1[g] = next
      }
      set round = round + 1
    }
    for g in 0..12 unroll {
      y[i + div(n, 12) * 12, g] = walk1[g]
    }
    let at: i64 = b6[i + div(n, 12) * 12, 12]
    let round1: i64 = 0
    let moved1: i64 = 1
    while and(round1 < 9, moved1 != 0) {
      set moved1 = 0
      let next: i64 = b9[at] + cast.i64(not(x[i + div(n, 12) * 12, b7[at]] <= b8[at]))
      set moved1 = or(moved1, xor(next, at))
      set at = next
      set round1 = round1 + 1
    }
    y[i + div(n, 12) * 12, 12] = at
  }
}

# a loop ends after the last row that is read of it; one that runs once is no loop
# run: --start=canon --stop=canon
graph
(%x: f32[5,2]) {
  %five: i64[] = const {5}
  %on: bool[] = const {true}
  %zero: f32[2] = const {0, 0}
  %h: f32[2], %all: f32[5,2] = loop(%five, %on, %zero) {scans=1} (%i: i64[], %c: bool[], %was: f32[2]) {
    %row: f32[2] = gather(%x, %i) {axis=0}
    %sum: f32[2] = add(%was, %row)
    return %c, %sum, %sum
  }
  %two: f32[2,2] = slice(%all) {start=[1,0], step=[-1,1], size=[2,2]}
  %neg: f32[5,2] = neg(%x)
  %g: f32[2], %some: f32[5,2] = loop(%five, %on, %zero) {scans=1} (%j: i64[], %d: bool[], %old: f32[2]) {
    %line: f32[2] = gather(%neg, %j) {axis=0}
    %max: f32[2] = max(%old, %line)
    return %d, %max, %max
  }
  %back: f32[5,2] = slice(%some) {start=[4,0], step=[-1,1], size=[5,2]}
  %last: f32[1,2] = slice(%back) {start=[4,0], step=[1,1], size=[1,2]}
  return %two, %last
}

# expect
ingot 2
graph
(%1: f32[5,2]) {
  %2: bool[] = const {true}
  %3: f32[2] = const {0, 0}
  %4: i64[] = const {2}
  %5: f32[2], %6: f32[2,2] = loop(%4, %2, %3) {scans=1} (%7: i64[], %8: bool[], %9: f32[2]) {
    %10: f32[2] = gather(%1, %7) {axis=0}
    %11: f32[2] = add(%9, %10)
    return %8, %11, %11
  }
  %12: f32[2,2] = slice(%6) {start=[1,0], step=[-1,1], size=[2,2]}
  %13: f32[5,2] = neg(%1)
  %14: f32[1,2] = slice(%13) {start=[0,0], step=[1,1], size=[1,2]}
  %15: f32[] = const {0}
  %16: f32[1,2] = max(%14, %15)
  return %12, %16
}

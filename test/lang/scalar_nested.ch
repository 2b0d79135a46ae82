// Arrays in arrays whose rows are of one length, in loops that run often: read, changed, measured; others are walked.
let grid = [[0; 12]; 9]
for step in 0..120 {
    for i in 0..9 {
        for j in 0..12 { grid[i][j] = grid[i][j] + i * j - step }
    }
}
let total = 0
for round in 0..30 {
    for i in 0..len(grid) {
        for j in 0..len(grid[i]) { total = total + grid[i][j] - grid[-1][-2] }
    }
}
print(total, grid[8][11], grid[3][4])
let kept = grid
let cube = [[[0.5; 4]; 3]; 2]
for n in 0..2000 {
    cube[n % 2][n % 3][n % 4] = cube[1][2][3] * 0.5 + n
    grid[n % 9][0] = n
}
print(cube, kept[8][0], grid[8][0])
// handed on, and the same code for another size
fn trace(m: [[int64]]) -> int64 {
    let t = 0
    for i in 0..len(m) { t = t + m[i][i] }
    t
}
let all = 0
for n in 0..2000 { all = all + trace(grid) }
let small = [[1, 2], [3, 4]]
for n in 0..2000 { all = all + trace(small) }
print(all)
// booleans; rows of several lengths, and rows as values
let life = [[false; 5]; 5]
for n in 0..1500 { life[n % 5][n % 3] = not life[n % 3][n % 5] }
print(life)
let steps = [[1], [1, 2], [1, 2, 3]]
let ragged = 0
for n in 0..1500 {
    for i in 0..3 { ragged = ragged + steps[i][i] }
    let row = grid[n % 9]
    ragged = ragged + row[1]
}
for row in grid {
    for x in row { ragged = ragged + x }
}
print(ragged)
for n in 0..3000 { grid[n / 200][n % 7] = n }

// expect
// -22550400 3420 -5700
// [[[3971.0, 0.5, 3977.0, 0.5], [3975.0, 0.5, 3957.0, 0.5], [3955.0, 0.5, 3973.0, 0.5]], [[0.5, 3956.0, 0.5, 3974.0], [0.5, 3972.0, 0.5, 3978.0], [0.5, 3976.0, 0.5, 3958.0]]] -7140 1997
// -61274000
// [[false, false, true, false, false], [true, false, false, false, false], [false, true, false, false, false], [true, true, true, false, false], [true, true, true, false, false]]
// -10385865

// error
// scalar_nested.ch:48:27: Index 9 out of bounds (len=9)
// for n in 0..3000 { grid[n / 200][n % 7] = n }
// ^

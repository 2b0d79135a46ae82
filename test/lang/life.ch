// The game of life: arrays in arrays as values, changed while another holds them.
let size = 10
let world = [[0; 10]; 10]
world[1][2] = 1
world[2][3] = 1
world[3][1] = 1
world[3][2] = 1
world[3][3] = 1
fn neighbours(w: [[int64]], i: int64, j: int64) -> int64 {
    let n = 0
    for di in -1..2 { for dj in -1..2 {
        if di != 0 or dj != 0 { n = n + w[(i + di + 10) % 10][(j + dj + 10) % 10] }
        } }
    n
}
for step in 0..40 {
    let next = world
    for i in 0..size { for j in 0..size {
        let n = neighbours(world, i, j)
        next[i][j] = if n == 3 or (n == 2 and world[i][j] == 1) { 1 } else { 0 }
        } }
    world = next
}
for row in world {
    let line = ""
    for c in row { line = line + if c == 1 { "#" } else { "." } }
    print(line)
}

// expect
// ..........
// ..#.......
// ...#......
// .###......
// ..........
// ..........
// ..........
// ..........
// ..........
// ..........

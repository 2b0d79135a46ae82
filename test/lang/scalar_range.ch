let n = 0
let top = 9223372036854775800
for i in 0..5000 {
    for j in 9223372036854775798..=top + i / 500 { n = n + 1 }
}

// error
// scalar_range.ch:4:33: the range is too long
// for j in 9223372036854775798..=top + i / 500 { n = n + 1 }
// ^

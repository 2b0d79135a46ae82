let a = [1.5; 3000]
let s = 0.0
for i in 0..9000 {
    s = s + a[2999 - i]
}
print(s)

// error
// scalar_index.ch:4:20: Index out of bounds: -3001
// s = s + a[2999 - i]
// ^

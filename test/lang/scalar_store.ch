let a = [0; 3000]
print("before")
let i = 0
while true {
    a[i] = i * i
    i = i + 1
}

// expect
// before

// error
// scalar_store.ch:5:7: Index 3000 out of bounds (len=3000)
// a[i] = i * i
// ^

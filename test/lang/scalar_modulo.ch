let s = 0
for i in -5000..5000 {
    s = s + 17 % i
}

// error
// scalar_modulo.ch:3:16: Modulo by zero
// s = s + 17 % i
// ^

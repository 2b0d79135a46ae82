let s = 0.0
for i in 0..4000 { s = s + sqrt(3500 - i) }

// error
// scalar_sqrt.ch:2:28: sqrt() of a negative number
// for i in 0..4000 { s = s + sqrt(3500 - i) }
// ^

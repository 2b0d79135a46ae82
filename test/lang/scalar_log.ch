let s = 0.0
for i in 0..4000 { s = s + log(3500 - i) }

// error
// scalar_log.ch:2:28: log() of a number that is not above 0
// for i in 0..4000 { s = s + log(3500 - i) }
// ^

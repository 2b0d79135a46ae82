// Arrays have a limit.
let a = [0; 100000000000]

// error
// too_large.ch:2:9: a value of 100000000000 elements: the limit is 268435456
// let a = [0; 100000000000]
// ^

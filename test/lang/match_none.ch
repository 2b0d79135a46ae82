// No arm fits.
let x = 5
print(match x { 1 => "a", 2 => "b" })

// error
// match_none.ch:3:7: Non-exhaustive match: value integer didn't match any pattern
// print(match x { 1 => "a", 2 => "b" })
// ^

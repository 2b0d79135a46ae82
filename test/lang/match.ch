// The first arm that fits; a name binds; arms may be blocks.
fn name(x: int32) -> string { match x { 0 => "zero", 1 => "one", -1 => "minus one", n => "many " + str(n) } }
print(name(0), name(1), name(-1), name(7))
let s = match "b" { "a" => 1 "b" => 2 _ => 3 }
print(s, match true { true => "yes", false => "no" }, match 2.5 { 2.5 => "half", _ => "other" })
print(match 3 { n => { let d = n * 2 d + 1 } })

// expect
// zero one minus one many 7
// 2 yes half
// 7

// break belongs to a loop, also in a function that a loop calls.
fn f() { break }
for i in 0..2 { f() }

// error
// break_outside.ch:2:10: 'break' outside of a loop
// fn f() { break }
// ^

// Errors of several statements in one run.
let = 3
let a = 1 +
print((1, 2)
fn f( { }
let ok = 1
if ok { print(1)

// error
// syntax.ch:2:5: expected the name of a variable, found '='
// let = 3
// ^
// syntax.ch:5:1: expected ')' after the arguments of a call, found 'fn'
// fn f( { }
// ^
// syntax.ch:5:7: expected the name of a parameter, found '{'
// fn f( { }
// ^
// syntax.ch:5:9: '}' without '{'
// fn f( { }
// ^
// syntax.ch:7:7: the block does not end: '}' is missing
// if ok { print(1)
// ^

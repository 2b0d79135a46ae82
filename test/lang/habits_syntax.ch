// What people write who know other languages: told with what is meant here.
let s = 'text'
let y = 5
if y = 5 { print("five") }
y += 1
y++
for i in 0..3: print(i)
let opt = adam(lr=0.1)
let z = 2 ** 3

// error
// habits_syntax.ch:2:9: unexpected character '''
// let s = 'text'
// ^
// hint: strings are written in double quotes
// habits_syntax.ch:2:14: unexpected character '''
// let s = 'text'
// ^
// hint: strings are written in double quotes
// habits_syntax.ch:4:6: expected '{' before a block, found '='
// if y = 5 { print("five") }
// ^
// hint: == compares
// habits_syntax.ch:5:4: expected an expression, found '='
// y += 1
// ^
// hint: x = x + 1 is how a variable is changed
// habits_syntax.ch:6:3: expected an expression, found '+'
// y++
// ^
// hint: x = x + 1 is how a variable is changed
// habits_syntax.ch:7:14: expected '{' before a block, found ':'
// for i in 0..3: print(i)
// ^
// hint: write a block in { }
// habits_syntax.ch:8:18: expected ')' after the arguments of a call, found '='
// let opt = adam(lr=0.1)
// ^
// hint: an argument is given by name as in f(x, lr: 0.1)
// habits_syntax.ch:9:12: expected an expression, found '*'
// let z = 2 ** 3
// ^
// hint: pow(a, b) is a power

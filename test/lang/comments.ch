// Comments of both kinds, semicolons where they may be.
/* a block
   of lines */
let a = 1; /* behind */ let b = 2;
print(a + b);; // two semicolons
let f = a // a sign on the next line goes on with the expression
- 1
print(f)

// expect
// 3
// 0

// What a loop defines is gone behind it.
for i in 0..3 { let inner = i }
print(inner)

// error
// for_scope.ch:3:7: Undefined variable: inner
// print(inner)
// ^

// if and while open no scope, for does; let may define a name anew as another kind.
if true { let a = 1 }
print(a)
let i = 0
while i < 3 { let seen = i i = i + 1 }
print(seen)
let x = 10
for k in 0..2 { let x = k * 100 }
print(x)
let x = "now a string"
print(x)
let v = tensor([1.0])
let v = 5
print(v)

// expect
// 1
// 2
// 10
// now a string
// 5

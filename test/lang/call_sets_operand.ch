// The first operand is read before a call in the second operand sets the variable. An array is read
// after its index.
let x = 1
fn f() { x = 10; 5 }
print(x + f(), x)
x = 1
print(min(x, f()), x)
x = 7
print(x < f(), x)
x = 1
print(x * (2 + f()), x)
x = 1
print(x - f() - x)
x = 1
if x == f() - 4 { print("equal") } else { print("different") }
x = 1
while x + f() < 9 { print("once", x) }
let y = 0.5
fn half() -> float { y = 4.0; 1.0 }
print(y * half(), max(y, half()))
let s = "a"
fn app() -> string { s = s + "b"; "-" }
print(s + app() + s)
let w = 3
fn incw() { w = w + 1; w }
print(w == incw(), w)
let xs = [1, 2, 3]
fn swap() { xs = [7, 8, 9]; 1 }
print(xs[swap()], xs[1])
fn element() { xs = [1, 2, 3]; xs[swap()] }
print(element())
let t = tensor([1.0, 2.0])
fn st() { t = tensor([10.0, 20.0]); 3.0 }
print(t * st())
print(t)
let v = 2.0
fn loss(z) { v = 100.0; z * z }
print(v * grad(loss)(3.0))
v = 2.0
print(v * autograd(loss, 3.0))
fn inside() { let k = x; x + f() + k }
x = 2
print(inside(), x)

// expect
// 6 10
// 1 10
// false 10
// 7 10
// -14
// equal
// once 10
// 0.5 4.0
// a-ab
// false 4
// 8 8
// 8
// AutogradTensor([3.0, 6.0], shape=[2])
// AutogradTensor([10.0, 20.0], shape=[2])
// 12.0
// 12.0
// 9 10

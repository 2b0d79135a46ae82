// Functions of numbers, strings and arrays.
print(abs(-3), abs(-2.5), min(2, 3), max(2, 3.0), pow(2, 10), sqrt(16.0))
print(exp(0.0), log(1.0), sin(0.0), cos(0.0), tan(0.0))
print(type(1), type(1.0), type(true), type("s"), type([]), type((1,)), type(print_it), type(tensor([1.0])))
fn print_it() { }
assert(1 < 2, "not reached")
let a = [1, 2]
push(a, 3)
print(a, pop(a), a, str(a) + "!")

// expect
// 3 2.5 2 3.0 1024.0 4.0
// 1.0 0.0 0.0 1.0 0.0
// integer float boolean string array tuple function autograd_tensor
// [1, 2, 3] 3 [1, 2] [1, 2]!

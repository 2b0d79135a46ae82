// A function takes variables of the functions around it along, by value; those of the file it sees.
fn adder(n: int32) { fn add(x: int32) { x + n } add }
let five = adder(5)
let ten = adder(10)
print(five(1), ten(1))
fn twice(f: fn(int32) -> int32, x: int32) -> int32 { f(f(x)) }
print(twice(five, 0), twice(fn(x: int32) -> int32 { x * 3 }, 2))
let count = 0
fn tick() { count = count + 1 }
tick()
tick()
print(count)
let fs = []
for i in 0..3 { fs = fs + [fn() { i * i }] }
print(fs[0](), fs[1](), fs[2]())

// expect
// 6 11
// 10 18
// 2
// 0 1 4

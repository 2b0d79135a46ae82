// What the checker does not know is looked at when it runs.
struct A { x: int32 }
struct B { y: int32 }
fn x_of(v: any) { v.x }
print(x_of(A { x: 4 }))
print(x_of(B { y: 5 }))

// expect
// 4

// error
// fields_any.ch:4:21: B has no field 'x'
// fn x_of(v: any) { v.x }
// ^

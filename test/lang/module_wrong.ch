// What a module has not, what it is not, and errors inside of it.
import "modules/broken.ch" as broken
import "modules/counter.ch" as counter
print(counter.previous())
let c = counter
counter.count = 3
let p: counter.Point = 3
if true { import "modules/counter.ch" as inner }

// error
// broken.ch:2:32: Cannot add integer and string
// fn half(x: int32) -> int32 { x + "a" }
// ^
// hint: str(x) makes a string of any value
// module_wrong.ch:4:15: the module 'counter' has no 'previous'
// print(counter.previous())
// ^
// module_wrong.ch:5:9: 'counter' is a module, not a value
// let c = counter
// ^
// hint: write name.thing for a definition of the module
// module_wrong.ch:6:9: variables of a module cannot be assigned to from outside
// counter.count = 3
// ^
// hint: a function of the module can change it
// module_wrong.ch:7:8: unknown type 'Point'
// let p: counter.Point = 3
// ^
// hint: types are int32 int64 float32 float64 bool string tensor [T] (T, U) fn(T) -> U
// module_wrong.ch:8:11: a module is imported outside of functions and blocks
// if true { import "modules/counter.ch" as inner }
// ^

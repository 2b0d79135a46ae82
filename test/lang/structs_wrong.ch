// Fields are checked: their names, their types, that all are given.
struct Point { x: float64, y: float64 }
struct Point { z: float64 }
struct Bad { a: nothing, a: int32 }
let p = Point { x: 1.0, y: "two" }
let q = Point { x: 1.0 }
let r = Point { x: 1.0, y: 1.0, z: 1.0, x: 2.0 }
print(p.z)
p.x = "far"
let n = 3
print(n.x)
let s = Pont { x: 1.0 }
fn f() {
    struct Inner { a: int32 }
}
fn g(p: Point) -> int32 { p }
g(3)
fn h(v: any) { v.x = 3 }

// error
// structs_wrong.ch:3:1: the struct 'Point' is defined twice
// struct Point { z: float64 }
// ^
// structs_wrong.ch:4:17: unknown type 'nothing'
// struct Bad { a: nothing, a: int32 }
// ^
// hint: types are int32 int64 float32 float64 bool string tensor [T] (T, U) fn(T) -> U
// structs_wrong.ch:4:26: the field 'a' is defined twice
// struct Bad { a: nothing, a: int32 }
// ^
// structs_wrong.ch:5:28: the field is float, found string
// let p = Point { x: 1.0, y: "two" }
// ^
// structs_wrong.ch:6:9: the field 'y' of Point is missing
// let q = Point { x: 1.0 }
// ^
// structs_wrong.ch:7:33: Point has no field 'z'
// let r = Point { x: 1.0, y: 1.0, z: 1.0, x: 2.0 }
// ^
// hint: Point has x y
// structs_wrong.ch:7:41: the field 'x' is given twice
// let r = Point { x: 1.0, y: 1.0, z: 1.0, x: 2.0 }
// ^
// structs_wrong.ch:8:9: Point has no field 'z'
// print(p.z)
// ^
// hint: Point has x y
// structs_wrong.ch:9:7: the field is float, found string
// p.x = "far"
// ^
// structs_wrong.ch:11:9: integer has no field 'x'
// print(n.x)
// ^
// structs_wrong.ch:12:9: unknown struct 'Pont'
// let s = Pont { x: 1.0 }
// ^
// structs_wrong.ch:14:5: a struct is defined outside of functions and blocks
// struct Inner { a: int32 }
// ^
// structs_wrong.ch:16:27: the function returns integer, found Point
// fn g(p: Point) -> int32 { p }
// ^
// structs_wrong.ch:17:3: the parameter is Point, found integer
// g(3)
// ^
// structs_wrong.ch:18:18: it is not known which struct has the field 'x'
// fn h(v: any) { v.x = 3 }
// ^
// hint: write its type down: let p: Point = ...

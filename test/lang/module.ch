// What a module defines is known by its name; it runs once, where it is imported first.
print("begin")
import "modules/geometry.ch" as geo
import "modules/counter.ch" as counter
let p = geo.Point { x: 3.0, y: 4.0 }
print(geo.norm(p), geo.unit, geo.origin)
fn far(p: geo.Point) -> bool { geo.norm(p) > 4.0 }
print(far(p), far(geo.origin), geo.scaled(p, 2.0))
print(counter.next(), counter.next(), counter.count)
let f = geo.norm
print(f(geo.Point { x: 0.0, y: 2.0 }))
let net = geo.Net()
print(net)
let count = 100
print(count, counter.count)

// expect
// begin
// counter runs
// geometry runs, count 1
// 5.0 1.0 Point { x: 0.0, y: 0.0 }
// true false Point { x: 6.0, y: 8.0 }
// 2 3 3
// 2.0
// Net(Linear(2 → 1))
// 100 3

// A module: see ../module.ch.
import "counter.ch" as counter
struct Point { x: float64, y: float64 }
model Net { layers { dense(2, 1) } }
let unit = 1.0
let origin = Point { x: 0.0, y: 0.0 }
fn norm(p: Point) -> float64 { sqrt(p.x * p.x + p.y * p.y) }
fn scaled(p: Point, k: float64) -> Point { Point { x: p.x * k, y: p.y * k } }
print("geometry runs, count", counter.next())

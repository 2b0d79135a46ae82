// Structs: declared fields, literals, access, assignment through fields and elements; they are values.
struct Point { x: float64, y: float64 }
struct Path {
    name: string
    points: [Point]
    weight: float64
}
let p = Point { x: 1, y: 2.5 }
print(p, p.x + p.y, type(p))
let q = p
q.x = 10
print(p.x, q.x, p == q, p == Point { y: 2.5, x: 1.0 })
fn length(p: Point) -> float64 { sqrt(p.x * p.x + p.y * p.y) }
print(length(Point { x: 3.0, y: 4.0 }))
let path = Path { name: "walk", points: [p, q], weight: 1.0 }
path.points[1].y = 7
path.points = path.points + [Point { x: 0.0, y: 0.0 }]
push(path.points, Point { x: 9.0, y: 9.0 })
print(path)
print(q.y, len(path.points), path.points[-1].x)
fn moved(p: Point, by: float64) -> Point {
    p.x = p.x + by
    p
}
print(moved(p, 5.0), p)
// fields may hold functions, tensors, and the struct itself in arrays
struct Layer { w: tensor<float32, [2, 2]>, act: fn(tensor) -> tensor }
struct Tree { value: int32, kids: [Tree] }
let layer = Layer { w: [[1, -2], [3, 4]], act: fn(x: tensor) -> tensor { nn_relu(x) } }
print(layer.act(tensor([1.0, 1.0], [1, 2]) @ layer.w))
fn total(t: Tree) -> int32 {
    let sum = t.value
    for k in t.kids { sum = sum + total(k) }
    sum
}
let tree = Tree { value: 1, kids: [Tree { value: 2, kids: [] }, Tree { value: 3, kids: [Tree { value: 4, kids: [] }] }] }
print(total(tree), tree.kids[1].kids[0])
let grid = [[p, p], [q, q]]
grid[1][0].x = -1.0
print(grid[1][0].x, grid[1][1].x)
if p.x < 3.0 { print("blocks behind names are blocks") }

// expect
// Point { x: 1.0, y: 2.5 } 3.5 Point
// 1.0 10.0 false true
// 5.0
// Path { name: walk, points: [Point { x: 1.0, y: 2.5 }, Point { x: 10.0, y: 7.0 }, Point { x: 0.0, y: 0.0 }, Point { x: 9.0, y: 9.0 }], weight: 1.0 }
// 2.5 4 9.0
// Point { x: 6.0, y: 2.5 } Point { x: 1.0, y: 2.5 }
// AutogradTensor([4.0, 2.0], shape=[1, 2])
// 10 Tree { value: 4, kids: [] }
// -1.0 10.0
// blocks behind names are blocks

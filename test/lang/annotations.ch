// Annotations are checked, and make floats of integers.
let x: float32 = 5
print(x)
let a: [float32] = [1, 2]
print(a)
let m: tensor<float32, [2, 3]> = [[1, 2, 3], [4, 5, 6]]
print(m)
fn scale(x: float32, by: float32) -> float32 { x * by }
print(scale(2, 3))

// expect
// 5.0
// [1.0, 2.0]
// AutogradTensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3])
// 6.0

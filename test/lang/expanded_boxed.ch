// A variable that was an argument of an expanded function holds a tensor, not the number that the function expects.
fn double(x: float) -> float { return x * 2.0 }
fn use(v) {
    let a = double(v)
    let w = v
    let u = v
    return (w, u)
}
let t = tensor_ones([1])
for i in 0..3 { print(use(t), use(2), use(0.5)) }
print(t)

// expect
// (AutogradTensor([1.0], shape=[1]), AutogradTensor([1.0], shape=[1])) (2, 2) (0.5, 0.5)
// (AutogradTensor([1.0], shape=[1]), AutogradTensor([1.0], shape=[1])) (2, 2) (0.5, 0.5)
// (AutogradTensor([1.0], shape=[1]), AutogradTensor([1.0], shape=[1])) (2, 2) (0.5, 0.5)
// AutogradTensor([1.0], shape=[1])

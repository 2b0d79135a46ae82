fn loss(w: tensor<float32, [2]>) -> float32 { sum(w * w) }
let g: gradient<tensor<float32, [2]>> = autograd(loss, tensor([1.5, -2.0]))
print(g)
fn apply(w: tensor, d: gradient<tensor>) -> tensor { w - 0.5 * d }
print(apply(tensor([1.5, -2.0]), g))

// expect
// AutogradTensor([3.0, -4.0], shape=[2])
// AutogradTensor([0.0, 0.0], shape=[2])

// Momentum with decay: the moment is detached, so a step costs what the first one did.
let opt = sgd_create(0.1, 0.5, 0.01)
let w = tensor_with_grad([4.0, -3.0], [2])
for i in 0..3000 {
    tensor_backward(sum(w * w))
    w = sgd_step(opt, [w])[0]
}
print(w)

// expect
// AutogradTensor([0.0, 0.0], shape=[2])

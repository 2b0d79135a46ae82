// A network learns XOR; the loss falls.
let X = tensor([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], [4, 2])
let Y = tensor([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0], [4, 2])
let W1 = tensor_requires_grad(tensor_randn_seeded([2, 8], 7), true)
let b1 = tensor_requires_grad(tensor_zeros([8]), true)
let W2 = tensor_requires_grad(tensor_randn_seeded([8, 2], 8), true)
let b2 = tensor_requires_grad(tensor_zeros([2]), true)
let opt = sgd_create(0.5)
let first = 0.0
let last = 0.0
for epoch in 0..300 {
    let loss = nn_cross_entropy_logits(nn_linear(nn_relu(nn_linear(X, W1, b1)), W2, b2), Y)
    tensor_backward(loss)
    let p = sgd_step(opt, [W1, b1, W2, b2])
    W1 = p[0]
    b1 = p[1]
    W2 = p[2]
    b2 = p[3]
    if epoch == 0 { first = tensor_item(loss) }
    last = tensor_item(loss)
}
print(opt, first > 1.0, last < 0.01)
print(argmax(nn_linear(nn_relu(nn_linear(X, W1, b1)), W2, b2), axis: 1), last)

// expect
// SGD(lr=0.5, momentum=0, weight_decay=0) true true
// [0, 1, 1, 0] 0.006422851462642093

// Functions that have two names, and the rest.
let m = tensor([1.0, 2.0, 3.0, 4.0], [2, 2])
print(transpose(m) == tensor_transpose(m), tensor_exp(tensor([0.0])), tensor_log(tensor([1.0])))
print(nn_layernorm(2), nn_dropout(0.25), sgd(0.1), type(sgd(0.1)))
let q = tensor([1.0, 0.0, 0.0, 1.0], [1, 2, 2])
print(attention_scaled_dot_product(q, q, q)[0] == attention_scaled(q, q, q)[0], mha_forward(q, q, q, 2, 1)[0] == attention_multi_head(q, q, q, 2, 1)[0])
let p = tensor([0.75, 0.25])
let t = tensor([1.0, 0.0])
print(mse_loss(p, t), nn_cross_entropy(p, t) == cross_entropy(p, t), binary_cross_entropy(p, t) == nn_binary_cross_entropy(p, t))
let w = tensor_requires_grad(tensor([2.0]), true)
tensor_backward(w * w)
reset_graph()
print(tensor_grad(w))

// expect
// true AutogradTensor([1.0], shape=[1]) AutogradTensor([0.0], shape=[1])
// LayerNorm(shape=[2], eps=0.00001) Dropout(p=0.25, training=true) SGD(lr=0.1, momentum=0, weight_decay=0) sgd_optimizer
// true true
// 0.0625 true true
// Tensor([1], [4.0])

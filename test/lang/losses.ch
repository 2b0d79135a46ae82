// A float where nothing is tracked, a tensor of one element where gradients go through.
let p = tensor([0.7, 0.2, 0.1])
let t = tensor([1.0, 0.0, 0.0])
print(loss_mse(p, t), nn_mse_loss(p, t), loss_cross_entropy(p, t), nn_cross_entropy_loss(p, t))
print(nn_binary_cross_entropy(tensor([0.5]), tensor([1.0])))
let z = tensor([1.0, 2.0, 3.0, 1.0], [2, 2])
let y = tensor([0.0, 1.0, 1.0, 0.0], [2, 2])
print(nn_cross_entropy_logits(z, y))
print(nn_cross_entropy_logits(tensor_requires_grad(z, true), y), loss_mse(tensor_requires_grad(p, true), t))

// expect
// 0.04666666666666668 0.04666666666666668 0.11889164797957748 0.11889164797957748
// 0.6931471805599453
// 0.22009484928059775
// AutogradTensor([0.22009484928059775], shape=[1]) AutogradTensor([0.04666666666666668], shape=[1])

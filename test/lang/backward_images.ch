// Gradients through convolutions and pools, against differences.
let image = tensor_randn_seeded([1, 1, 4, 4], 5)
let layer = conv2d(1, 2, 3, 1, 1)
fn score(x: tensor) -> tensor { tensor_reshape(nn_maxpool2d(layer_forward(layer, x), 2, 2), [8]) }
let target = tensor([1.0, -1.0, 0.5, 0.0, 2.0, 1.0, -0.5, 0.25])
let leaf = tensor_requires_grad(image + 0.0, true)
tensor_backward(loss_mse(score(leaf), target))
let g = tensor_get_data(tensor_grad(leaf))
let worst = 0.0
for i in 0..16 {
    let d = [0.0; 16]
    d[i] = 0.00001
    let step = tensor(d, [1, 1, 4, 4])
    let slope = (tensor_item(loss_mse(score(image + step), target)) - tensor_item(loss_mse(score(image - step), target))) / 0.00002
    worst = max(worst, abs(slope - g[i]))
}
print(worst < 0.00001)
let a = tensor_requires_grad(tensor_ones([1, 1, 2, 2]), true)
tensor_backward(nn_avgpool2d(a, 2, 2))
print(tensor_grad(a))

// expect
// true
// Tensor([1, 1, 2, 2], [0.25, 0.25, 0.25, 0.25])

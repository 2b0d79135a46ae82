// Layers that are not there, and shapes that do not fit.
model Net { layers { dense(2, 3) activation(tanh) } }
let m = Net()
print(tensor_shape(m(tensor_ones([4, 2]))), len(m.parameters()))
m.update_parameters(autograd(nn_mse_loss(m.forward(tensor_ones([1, 2])), tensor([0.0, 0.0, 0.0])), m.parameters()), 0.1)
m.forward(tensor_ones([4, 5]))

// expect
// [4, 3] 2

// error
// model_wrong.ch:6:3: Linear(2 → 3) takes [.., inputs], got shape [4, 5]
// m.forward(tensor_ones([4, 5]))
// ^

// Shapes that do not fit a model, found when it runs.
model Net { layers { dense(2, 3) activation(tanh) } }
let m = Net()
print(tensor_shape(m(tensor_ones([4, 2]))), len(m.parameters()))
m.update_parameters(autograd(nn_mse_loss(m.forward(tensor_ones([1, 2])), tensor([0.0, 0.0, 0.0])), m.parameters()), 0.1)
let n = 5
m.forward(tensor_ones([4, n]))

// expect
// [4, 3] 2

// error
// model_wrong.ch:7:3: Linear(2 → 3) takes [.., inputs], got shape [4, 5]
// m.forward(tensor_ones([4, n]))
// ^

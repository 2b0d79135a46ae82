// Recurrent layers from [batch, steps, in] to [batch, steps, hidden].
let x = tensor([1.0, 0.5, -1.0, 0.25], [1, 2, 2])
print(lstm_forward(lstm_create(2, 2), x))
print(gru_forward(gru_create(2, 2), x))

// expect
// AutogradTensor([-0.0663376285230144, -0.06426915723817594, 0.0406844763331046, 0.03037549356965046], shape=[1, 2, 2])
// AutogradTensor([-0.3209401098795307, -0.27051197350266354, -0.04341247843545848, -0.019176585534464746], shape=[1, 2, 2])

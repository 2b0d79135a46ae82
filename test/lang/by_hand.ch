// Gradients and steps by hand.
print(autograd_compute_mse_grad(tensor([2.0, 3.0, 4.0]), tensor([1.0, 2.0, 3.0])))
print(autograd_compute_relu_grad(tensor([-1.0, 0.0, 1.0, 2.0]), [1.0, 1.0, 1.0, 1.0]))
print(autograd_compute_sigmoid_grad(tensor([0.5, 0.25]), [1.0, 2.0]))
print(autograd_compute_linear_grad(tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0, 4.0], [2, 2]), tensor([0.0, 0.0]), [1.0, 0.5]))
print(optim_sgd_step(tensor([1.0, 2.0]), [0.5, 0.5], 0.1), tensor_update_inplace(tensor([1.0]), [1.0], 0.5))
print(optim_sgd_momentum_step(tensor([1.0]), [0.5], [0.2], 0.1, 0.9))
print(optim_adam_step(tensor([1.0]), [0.5], [0.0], [0.0], 1, 0.1, 0.9, 0.999))
print(tensor_clip_grad([3.0, 4.0], 1.0), tensor_clip_grad([0.3, 0.4], 1.0))
print(step_lr(0.1, 25, 10, 0.5), exponential_lr(0.1, 2, 0.5), cosine_annealing_lr(0.1, 0.0, 5, 10))

// expect
// [0.6666666666666666, 0.6666666666666666, 0.6666666666666666]
// [0.0, 0.0, 1.0, 1.0]
// [0.25, 0.375]
// ([2.0, 5.0], [1.0, 0.5, 2.0, 1.0], [1.0, 0.5])
// AutogradTensor([0.95, 1.95], shape=[2]) AutogradTensor([0.5], shape=[1])
// (AutogradTensor([0.9319999999999999], shape=[1]), [0.68])
// (AutogradTensor([0.900000002], shape=[1]), [0.04999999999999999], [0.0002500000000000002])
// [0.6000000000000001, 0.8] [0.3, 0.4]
// 0.025 0.025 0.05

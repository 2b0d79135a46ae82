// A gradient has the shape of its parameter.
let p = tensor([1.0, 2.0])
print(optim_sgd_step(p, tensor([1.0, 1.0]), 0.5))
print(optim_sgd_step(p, late(tensor([[1.0], [1.0]])), 0.5))
// what is not known before the run is found then
fn late(t: any) { t }

// expect
// AutogradTensor([0.5, 1.5], shape=[2])

// error
// optim_shape.ch:4:7: optim_sgd_step(): shape [2, 1] for a parameter of shape [2]
// print(optim_sgd_step(p, late(tensor([[1.0], [1.0]])), 0.5))
// ^

// A number that a gradient would not go through is refused.
fn f(x: float) -> float { sum(nn_leaky_relu(tensor([1.0, -1.0]), x)) }
print(autograd(f, 0.5))

// error
// grad_cut.ch:2:31: nn_leaky_relu(): no gradient goes through this argument; tensor_requires_grad(t, false) gives the tensor without one
// fn f(x: float) -> float { sum(nn_leaky_relu(tensor([1.0, -1.0]), x)) }
// ^

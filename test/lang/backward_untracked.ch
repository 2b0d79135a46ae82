// Nothing is tracked.
tensor_backward(tensor([1.0]))

// error
// backward_untracked.ch:2:1: tensor_backward(): no gradient goes through this value; tensor_requires_grad(t, true) marks what it is computed from
// tensor_backward(tensor([1.0]))
// ^

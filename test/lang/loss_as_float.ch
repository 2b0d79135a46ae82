// A loss that a function gives as a float has no gradient any more; the message says what to write.
fn mse(p: tensor, t: tensor) -> float32 { mean((p - t) * (p - t)) }
let w = tensor_with_grad([0.0], [1])
tensor_backward(mse(w * 2.0, tensor([1.0])))

// error
// loss_as_float.ch:4:17: tensor_backward() takes a tensor here, found float
// tensor_backward(mse(w * 2.0, tensor([1.0])))
// ^
// hint: a function that gives a loss whose gradient is wanted says -> tensor

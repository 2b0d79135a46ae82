// A network from a file has no gradients: none is cut in silence.
import "../../models/digits.onnx" as net
fn f(x) { sum(net(x)) + sum(x * x) }
print(grad(f)(tensor_zeros([1, 1, 8, 8])))

// error
// import_grad.ch:3:15:
// models/digits.onnx: no gradient goes through an imported network; tensor_requires_grad(t, false) gives the tensor without one
// fn f(x) { sum(net(x)) + sum(x * x) }
// ^

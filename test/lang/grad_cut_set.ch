// tensor_set makes a tensor by itself.
fn f(w) { sum(tensor_set(w, [0], 1.0) * w) }
print(grad(f)(tensor([1.0, 2.0])))

// error
// grad_cut_set.ch:2:15: tensor_set(): no gradient goes through this argument; tensor_requires_grad(t, false) gives the tensor without one
// fn f(w) { sum(tensor_set(w, [0], 1.0) * w) }
// ^

// A sum of what was not marked is a number; marks and steps whose value nobody takes change nothing.
let w = tensor([1.0, 2.0], [2])
tensor_requires_grad(w, true)
let step = sgd_create(0.5)
for i in 0..2 {
    sgd_step(step, [w])
}
let loss = tensor_sum(tensor_mul(w, w))
print(loss)
tensor_backward(loss)

// expect
// 5.0
// error
// backward_number.ch:10:1: tensor_backward(): no gradient goes through this value; tensor_requires_grad(t, true) marks what it is computed from
// tensor_backward(loss)
// ^

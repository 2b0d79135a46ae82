// Functions and operators element by element, with broadcasting and numbers.
let a = tensor([1.0, 2.0, 3.0])
let b = tensor([4.0, 5.0, 6.0])
print(tensor_add(a, b), tensor_sub(a, b), tensor_mul(a, b), tensor_div(b, a))
print(tensor_mul(a, 2.0), tensor_div(a, 2.0), tensor_add(a, 1))
print(a + b, a - 1, 2 * a, a / b, -a)
print(tensor([1.0, 2.0], [2, 1]) + a)
print(tensor_abs(tensor([-1.0, 2.0])), tensor_sqrt(tensor([4.0, 9.0])))
print(exp(tensor([0.0])), log(tensor([1.0])), pow(a, 2), sqrt(tensor([16.0])), tensor_sin(0.0), tensor_cos(tensor([0.0])))

// expect
// AutogradTensor([5.0, 7.0, 9.0], shape=[3]) AutogradTensor([-3.0, -3.0, -3.0], shape=[3]) AutogradTensor([4.0, 10.0, 18.0], shape=[3]) AutogradTensor([4.0, 2.5, 2.0], shape=[3])
// AutogradTensor([2.0, 4.0, 6.0], shape=[3]) AutogradTensor([0.5, 1.0, 1.5], shape=[3]) AutogradTensor([2.0, 3.0, 4.0], shape=[3])
// AutogradTensor([5.0, 7.0, 9.0], shape=[3]) AutogradTensor([0.0, 1.0, 2.0], shape=[3]) AutogradTensor([2.0, 4.0, 6.0], shape=[3]) AutogradTensor([0.25, 0.4, 0.5], shape=[3]) AutogradTensor([-1.0, -2.0, -3.0], shape=[3])
// AutogradTensor([2.0, 3.0, 4.0, 3.0, 4.0, 5.0], shape=[2, 3])
// AutogradTensor([1.0, 2.0], shape=[2]) AutogradTensor([2.0, 3.0], shape=[2])
// AutogradTensor([1.0], shape=[1]) AutogradTensor([0.0], shape=[1]) AutogradTensor([1.0, 4.0, 9.0], shape=[3]) AutogradTensor([4.0], shape=[1]) 0.0 AutogradTensor([1.0], shape=[1])

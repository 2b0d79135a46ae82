// What takes numbers passes gradients on; comparisons see the number.
fn largest(x: float) -> float { x * x + max(x, 0.0) + min(10.0, x) }
fn cast(x: float) -> float { x * x + 5.0 * (x as float64) }
fn listed(x: float) -> float { sum(tensor([x, 2.0])) * x + sum(tensor([[x], [x]])) }
fn shaped(x: float) -> float { sum(tensor([x, 2.0, x, 1.0], [2, 2])) }
fn filled(x: float) -> float { sum(tensor_full([2, 3], x) * x) }
fn item(x: float) -> float { tensor_item(x) * tensor_item(x) }
print(autograd(largest, 3.0), autograd(cast, 3.0), autograd(listed, 3.0), autograd(shaped, 3.0), autograd(filled, 3.0), autograd(item, 3.0))

fn reduced(w) { sum(w * w) + tensor_sum(w) + tensor_mean(w) }
fn best(w) { sum(w * w) + max(w) - tensor_min(w) + tensor_get(w, [1]) }
print(grad(reduced)(tensor([1.0, 2.0])), grad(best)(tensor([1.0, 2.0])))
let w = tensor_with_grad([1.0, 2.0], [2])
let loss = sum(w * w) + tensor_sum(w)
tensor_backward(loss)
print(tensor_grad(w), tensor_item(loss))

fn same(x: float) -> float { if x == 3.0 { x * x } else { x } }
fn other(x: float) -> float { if x != 3 { x } else { x * x } }
fn matched(x: float) -> float {
    match x {
        3.0 => x * x,
        _ => x
    }
}
print(grad(same)(3.0), grad(same)(2.0), grad(other)(3.0), grad(matched)(3.0))
print(tensor([3.0]) == 3.0, 3 != tensor([3.0]), tensor([3.0, 3.0]) == 3.0)

// expect
// 8.0 11.0 10.0 2.0 36.0 6.0
// AutogradTensor([3.5, 5.5], shape=[2]) AutogradTensor([1.0, 6.0], shape=[2])
// Tensor([2], [3.0, 5.0]) 8.0
// 6.0 1.0 6.0 6.0
// true false false

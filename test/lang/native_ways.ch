// What tensors hold decides the way: a compiled program has the graphs of all ways.
let X = tensor([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], [4, 2])
let Y = tensor([0.0, 1.0, 1.0, 0.0], [4, 1])
let w = tensor_requires_grad(tensor_randn_seeded([2, 4], 3), true)
let v = tensor_requires_grad(tensor_randn_seeded([4, 1], 4), true)
let opt = adam_create(0.1)
fn loss_of() -> tensor { nn_mse_loss(nn_sigmoid(nn_tanh(X @ w) @ v), Y) }
let steps = 0
let best = 100.0
let kept = v
while true {
    let loss = loss_of()
    tensor_backward(loss)
    let p = adam_step(opt, [w, v])
    w = p[0]
    v = p[1]
    steps = steps + 1
    if tensor_item(loss) < best {
        best = tensor_item(loss)
        kept = v * 2.0
    }
    if best < 0.05 { break }
    if steps > 400 { break }
}
print("steps", steps, "best", best)
print(kept, tensor_sum(kept))
fn sign(t: tensor) -> int64 {
    if tensor_sum(t) > 0.0 { return 1 }
    if tensor_max(t) > 5.0 { return 2 }
    -1
}
print(sign(v), sign(-v), sign(tensor_abs(v)))
let counts = [0; 5]
let classes = argmax(tensor_randn_seeded([20, 5], 1), axis: 1)
for c in classes { counts[c] = counts[c] + 1 }
print(counts)
let names = ["a", "b", "c", "d", "e"]
let word = ""
for c in classes { word = word + names[c] }
print(word, len(word))
let wrong = []
for i in 0..20 {
    if classes[i] != i % 5 { push(wrong, i) }
}
print(wrong, len(wrong))
let y = if tensor_get(v, [0, 0]) > 0.0 { tensor_ones([2, 2]) } else { tensor_eye(2) * 3.0 }
print(y + 1.0)
let text = match classes[0] { 0 => "none", 1 => str(tensor_sum(y)), n => "class " + str(n) }
print(text)
let k = 0
while k < classes[1] + 2 {
    k = k + 1
    print(k, tensor_mean(y * k))
}
for i in 0..classes[2] + 1 { print("turn", i) }
if steps > 3 and best < 0.5 or classes[3] == 9 { print(y @ y) }
fn walk(n: int64) -> int64 { if n <= 0 { 0 } else { 1 + walk(n - 1) } }
print(walk(classes[4] + 3))

// expect
// steps 401 best 0.06259757237407856
// AutogradTensor([-9.177653263009335, -5.482059234095086, 9.471110893746726, -4.115145956008302], shape=[4, 1]) AutogradTensor([-9.303747559365997], shape=[1])
// -1 1 1
// [3, 4, 5, 5, 3]
// cacecdeddbbccebdbdaa 20
// [0, 1, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19] 16
// AutogradTensor([4.0, 1.0, 1.0, 4.0], shape=[2, 2])
// class 2
// 1 1.5
// 2 3.0
// turn 0
// turn 1
// turn 2
// AutogradTensor([9.0, 0.0, 0.0, 9.0], shape=[2, 2])
// 5

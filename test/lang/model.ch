// A model block is a class; its objects have weights of their own, and learn.
model Net {
    layers {
        dense(2, 16, activation: relu)
        dropout(0.1)
        dense(16, 2)
    }
}
let X = tensor([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], [4, 2])
let Y = tensor([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0], [4, 2])
let m = Net()
print(m)
let opt = adam(0.05)
for i in 0..200 {
    let loss = nn_cross_entropy_logits(m.forward(X), Y)
    tensor_backward(loss)
    m.step(opt)
    if i % 100 == 0 { print(i, tensor_item(loss) > 0.1) }
}
m.eval()
print(argmax(m.forward(X), axis: 1))
fn cube(x: any) { x * x * x }
let d = grad(cube)
print(d(2.0), autograd(cube, 2.0))

// expect
// Net(Linear(2 → 16), relu, Dropout(p=0.1, training=true), Linear(16 → 2))
// 0 true
// 100 false
// [0, 1, 1, 0]
// 12.0 12.0

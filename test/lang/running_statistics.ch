// A batchnorm of a model normalises by the batch while it is trained, and by what it has seen behind eval().
model Norm { layers { batchnorm(1) } }
let m = Norm()
let x = tensor([1.0, 3.0], [2, 1])
print(m(x))
m.eval()
print(m(tensor([2.0], [1, 1])), (2.0 - 0.2) / sqrt(1.1 + 0.00001))
m.train()
let y = m(x)
m.eval()
print(m(tensor([2.0], [1, 1])), (2.0 - 0.38) / sqrt(1.19 + 0.00001))
// and its gradients go on
model Net { layers { dense(2, 3) batchnorm(3) activation(relu) dropout(0.0) dense(3, 1) } }
let net = Net()
let opt = sgd(0.1)
let data = tensor_randn_seeded([8, 2], 3)
let want = tensor_randn_seeded([8, 1], 4)
let first = 0.0
for i in 0..20 {
    let loss = loss_mse(net(data), want)
    tensor_backward(loss)
    net.step(opt)
    if i == 0 { first = tensor_item(loss) }
    if i == 19 { print(tensor_item(loss) < first) }
}
net.eval()
print(len(net.parameters()), loss_mse(net(data), want) < first)

// expect
// AutogradTensor([-0.9999950000374997, 0.9999950000374997], shape=[2, 1])
// AutogradTensor([1.716224859637706], shape=[1, 1]) 1.7162248596377063
// AutogradTensor([1.485045325512569], shape=[1, 1]) 1.4850453255125693
// true
// 6 true

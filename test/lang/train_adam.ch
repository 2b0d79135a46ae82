// Optimisers keep their moments: the second step of Adam and momentum is not the first again.
let target = tensor([3.0, -1.0])
fn descend(opt: any, step: any) {
    let w = tensor_requires_grad(tensor([0.0, 0.0]), true)
    for i in 0..3 {
        tensor_backward(nn_mse_loss(w, target))
        w = step(opt, [w])[0]
        print(w)
    }
}
print(adam_create(0.1), rmsprop_create(0.001), sgd_create(0.01, 0.9, 0.1))
descend(adam_create(0.1), fn(o: any, p: any) { adam_step(o, p) })
descend(sgd_create(0.1, 0.9), fn(o: any, p: any) { sgd_step(o, p) })
descend(rmsprop_create(0.1), fn(o: any, p: any) { rmsprop_step(o, p) })
descend(sgd_create(0.1, 0.0, 0.5), fn(o: any, p: any) { sgd_step(o, p) })

// expect
// Adam(lr=0.1, beta1=0.9, beta2=0.999, eps=0.00000001) RMSprop(lr=0.001, alpha=0.99, eps=0.00000001) SGD(lr=0.01, momentum=0.9, weight_decay=0.1)
// AutogradTensor([0.09999999966666667, -0.09999999900000002], shape=[2])
// AutogradTensor([0.19989729224944813, -0.1995877702876619], shape=[2])
// AutogradTensor([0.2996184760421757, -0.29841372549558504], shape=[2])
// AutogradTensor([0.30000000000000004, -0.1], shape=[2])
// AutogradTensor([0.8400000000000001, -0.28], shape=[2])
// AutogradTensor([1.5420000000000003, -0.514], shape=[2])
// AutogradTensor([0.9999999666666675, -0.9999999000000096], shape=[2])
// AutogradTensor([1.5566302975689352, -1.0000000005037715], shape=[2])
// AutogradTensor([1.931005061937178, -0.9999999999949114], shape=[2])
// AutogradTensor([0.30000000000000004, -0.1], shape=[2])
// AutogradTensor([0.5550000000000002, -0.185], shape=[2])
// AutogradTensor([0.7717500000000002, -0.25725], shape=[2])

// Shapes that follow from the text are checked before anything runs, by the rule of each function.
print("never printed")
print(nn_linear(tensor_ones([2, 3]), tensor_ones([3, 2]), tensor_ones([2, 1])))
let v = tensor([1.0, 2.0, 3.0, 4.0])
print(loss_mse(reshape(v, [4, 1]), reshape(v, [1, 4])))
print(optim_sgd_step(v, tensor([[1.0], [1.0]]), 0.5))
print(tensor_add(v, tensor([1.0, 2.0, 3.0])))
print(tensor([1.0, 2.0, 3.0], [2, 2]), reshape(v, [3, 2]))
print(flatten(tensor_ones([2, 3])) + v)
model Net {
    layers {
        conv2d(1, 4, 3, 1, 1, activation: relu)
        maxpool2d(2)
        flatten()
        dense(64, 10, activation: relu)
        dropout(0.5)
        dense(11, 2)
    }
}
let net = Net()
print(net(tensor_ones([1, 1, 8, 8])))
model Good { layers { dense(4, 3) layernorm(3) dense(3, 2) } }
let good = Good()
print(good.forward(tensor_ones([2, 5])))
print(good(v) + tensor_ones([3]))
model Bad { layers { dens(1, 2) dense(1) dense("a", 2, activation: rely) activation(nothing) } }

// error
// shapes_checked.ch:3:7: nn_linear(): shapes [2, 3], [3, 2] and [2, 1] do not fit: x [.., in], weights [in, out], bias [out]
// print(nn_linear(tensor_ones([2, 3]), tensor_ones([3, 2]), tensor_ones([2, 1])))
// ^
// shapes_checked.ch:5:7: loss_mse(): shape mismatch [4, 1] vs [1, 4]
// print(loss_mse(reshape(v, [4, 1]), reshape(v, [1, 4])))
// ^
// shapes_checked.ch:6:7: optim_sgd_step(): shape [2, 1] for a parameter of shape [4]
// print(optim_sgd_step(v, tensor([[1.0], [1.0]]), 0.5))
// ^
// shapes_checked.ch:7:7: tensor_add: shapes of tensor<float64, [4]> and tensor<float64, [3]> do not fit
// print(tensor_add(v, tensor([1.0, 2.0, 3.0])))
// ^
// shapes_checked.ch:8:7: tensor() shape [2, 2] (total: 4) does not match data length 3
// print(tensor([1.0, 2.0, 3.0], [2, 2]), reshape(v, [3, 2]))
// ^
// shapes_checked.ch:8:40: reshape(): cannot reshape [4] to [3, 2]
// print(tensor([1.0, 2.0, 3.0], [2, 2]), reshape(v, [3, 2]))
// ^
// shapes_checked.ch:9:36: +: shapes of tensor<float64, [6]> and tensor<float64, [4]> do not fit
// print(flatten(tensor_ones([2, 3])) + v)
// ^
// shapes_checked.ch:21:7: the layer dense of line 17 does not take tensor<float64, [1, 10]>
// print(net(tensor_ones([1, 1, 8, 8])))
// ^
// shapes_checked.ch:24:12: the layer dense of line 22 does not take tensor<float64, [2, 5]>
// print(good.forward(tensor_ones([2, 5])))
// ^
// shapes_checked.ch:25:15: +: shapes of tensor<float64, [2]> and tensor<float64, [3]> do not fit
// print(good(v) + tensor_ones([3]))
// ^
// shapes_checked.ch:26:22: unknown layer 'dens'
// model Bad { layers { dens(1, 2) dense(1) dense("a", 2, activation: rely) activation(nothing) } }
// ^
// hint: did you mean 'dense'?
// shapes_checked.ch:26:33: the layer 'dense' takes 2 to 2 sizes
// model Bad { layers { dens(1, 2) dense(1) dense("a", 2, activation: rely) activation(nothing) } }
// ^
// shapes_checked.ch:26:48: dense() takes an integer here, found string
// model Bad { layers { dens(1, 2) dense(1) dense("a", 2, activation: rely) activation(nothing) } }
// ^
// shapes_checked.ch:26:68: unknown activation 'rely', expected one of relu, sigmoid, tanh, softmax, gelu
// model Bad { layers { dens(1, 2) dense(1) dense("a", 2, activation: rely) activation(nothing) } }
// ^
// hint: did you mean 'relu'?
// shapes_checked.ch:26:85: unknown activation 'nothing', expected one of relu, sigmoid, tanh, softmax, gelu
// model Bad { layers { dens(1, 2) dense(1) dense("a", 2, activation: rely) activation(nothing) } }
// ^

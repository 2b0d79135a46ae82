// Layers as objects: fixed weights, no GPU needed.
let l = linear(3, 2)
print(l, layer_forward(l, tensor([1.0, 2.0, 3.0], [1, 3])), l.forward(tensor_zeros([1, 3])))
print(conv2d(3, 16, 3), maxpool2d(2), avgpool2d(3), batchnorm(16), layernorm(4), dropout(0.5), lstm_create(3, 4), gru_create(3, 4))
print(type(l), type(conv2d(1, 1, 1)), type(dropout(0.1)))
let x = tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0], [1, 1, 4, 4])
print(tensor_shape(layer_forward(conv2d(1, 2, 3), x)), layer_forward(maxpool2d(2), x), layer_forward(avgpool2d(2), x))
print(nn_maxpool2d(x, 2, 1), nn_avgpool2d(x, 2, 0), tensor_shape(nn_conv2d(x, 1, 3, 3, 1, 1)))
print(layer_forward(dropout(0.5), tensor_ones([16])))
print(layer_forward(layernorm(2), tensor([1.0, 3.0], [1, 2])), nn_batchnorm(tensor([1.0, 3.0], [2, 1]), 1))
print(nn_linear_forward(nn_linear_create(2, 1), tensor([1.0, 1.0])))

// expect
// Linear(3 → 2) AutogradTensor([-1.383995326709015, -1.081399189700516], shape=[1, 2]) AutogradTensor([0.0, 0.0], shape=[1, 2])
// Conv2d(3 → 16, kernel=3, stride=1, padding=0) MaxPool2d(kernel=2, stride=2) AvgPool2d(kernel=3, stride=3) BatchNorm(features=16, eps=0.00001, training=true) LayerNorm(shape=[4], eps=0.00001) Dropout(p=0.5, training=true) LSTM(input_size=3, hidden_size=4) GRU(input_size=3, hidden_size=4)
// linear_layer conv2d_layer dropout_layer
// [1, 2, 2, 2] AutogradTensor([6.0, 8.0, 14.0, 16.0], shape=[1, 1, 2, 2]) AutogradTensor([3.5, 5.5, 11.5, 13.5], shape=[1, 1, 2, 2])
// AutogradTensor([6.0, 7.0, 8.0, 10.0, 11.0, 12.0, 14.0, 15.0, 16.0], shape=[1, 1, 3, 3]) AutogradTensor([3.5, 5.5, 11.5, 13.5], shape=[1, 1, 2, 2]) [1, 3, 4, 4]
// AutogradTensor([2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.0, 0.0], shape=[16])
// AutogradTensor([-0.9999950000374997, 0.9999950000374997], shape=[1, 2]) AutogradTensor([-0.9999950000374997, 0.9999950000374997], shape=[2, 1])
// Tensor([1], [-0.8777128240708413])

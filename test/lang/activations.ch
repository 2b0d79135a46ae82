// Activations, by functions of both families.
let x = tensor([-2.0, -0.5, 0.0, 1.0])
print(nn_relu(x), tensor_relu(x), relu(x), relu(-3.0))
print(nn_sigmoid(x), sigmoid(0.0), nn_tanh(x), tanh(0.0))
print(nn_softmax(tensor([1.0, 2.0, 3.0])), softmax(tensor([1.0, 1.0, 2.0, 2.0], [2, 2])))
print(nn_gelu(x), nn_leaky_relu(x, 0.1), nn_elu(x, 1.0))
print(tensor_sigmoid(x) == nn_sigmoid(x), tensor_tanh(x) == nn_tanh(x), tensor_gelu(x) == nn_gelu(x), tensor_softmax(x) == nn_softmax(x))

// expect
// AutogradTensor([0.0, 0.0, 0.0, 1.0], shape=[4]) AutogradTensor([0.0, 0.0, 0.0, 1.0], shape=[4]) AutogradTensor([0.0, 0.0, 0.0, 1.0], shape=[4]) 0.0
// AutogradTensor([0.11920292202211755, 0.3775406687981454, 0.5, 0.7310585786300049], shape=[4]) 0.5 AutogradTensor([-0.9640275800758169, -0.4621171572600098, 0.0, 0.7615941559557649], shape=[4]) 0.0
// AutogradTensor([0.09003057317038046, 0.24472847105479764, 0.6652409557748218], shape=[3]) AutogradTensor([0.5, 0.5, 0.5, 0.5], shape=[2, 2])
// AutogradTensor([-0.04540230591222494, -0.15428599017485606, 0.0, 0.8411919906082768], shape=[4]) AutogradTensor([-0.2, -0.05, 0.0, 1.0], shape=[4]) AutogradTensor([-0.8646647167633873, -0.3934693402873666, 0.0, 1.0], shape=[4])
// true true true true

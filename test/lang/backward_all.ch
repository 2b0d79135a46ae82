// Every function that maps tensors to tensors hands gradients on.
fn check(name: string, f: fn(tensor) -> tensor, x: tensor) {
    let leaf = tensor_requires_grad(x + 0.0, true)
    let w = tensor_reshape(tensor_randn_seeded([tensor_size(f(x))], 3), tensor_shape(f(x)))
    tensor_backward(tensor_mul(f(leaf), w))
    let g = tensor_get_data(tensor_grad(leaf))
    let worst = 0.0
    for i in 0..tensor_size(x) {
        let d = [0.0; tensor_size(x)]
        d[i] = 0.00001
        let step = tensor_reshape(tensor(d), tensor_shape(x))
        let slope = (tensor_sum(tensor_mul(f(x + step), w)) - tensor_sum(tensor_mul(f(x - step), w))) / 0.00002
        worst = max(worst, abs(slope - g[i]))
    }
    print(name, worst < 0.0001)
}
let x = tensor([0.3, -0.7, 1.2, 0.9, -1.4, 0.6], [2, 3])
let other = tensor([0.5, 0.4, -0.3, 0.2, 0.8, -0.9], [3, 2])
check("relu", fn(t: tensor) -> tensor { tensor_relu(t) }, x)
check("sigmoid", fn(t: tensor) -> tensor { tensor_sigmoid(t) }, x)
check("tanh", fn(t: tensor) -> tensor { nn_tanh(t) }, x)
check("softmax", fn(t: tensor) -> tensor { nn_softmax(t) }, x)
check("gelu", fn(t: tensor) -> tensor { nn_gelu(t) }, x)
check("elu", fn(t: tensor) -> tensor { nn_elu(t, 0.5) }, x)
check("leaky", fn(t: tensor) -> tensor { nn_leaky_relu(t, 0.1) }, x)
check("matmul", fn(t: tensor) -> tensor { tensor_matmul(t, other) }, x)
check("transpose", fn(t: tensor) -> tensor { tensor_transpose(t) }, x)
check("reshape", fn(t: tensor) -> tensor { tensor_reshape(t, [6]) }, x)
check("concat", fn(t: tensor) -> tensor { tensor_concat([t, t], 1) }, x)
check("divide", fn(t: tensor) -> tensor { tensor_div(t, 3.0) }, x)
check("exp", fn(t: tensor) -> tensor { exp(t) }, x)
check("row", fn(t: tensor) -> tensor { t[1] }, x)
check("layernorm", fn(t: tensor) -> tensor { layer_forward(layernorm(3), t) }, x)
check("batchnorm", fn(t: tensor) -> tensor { nn_batchnorm(t, 3) }, x)
check("attention", fn(t: tensor) -> tensor { attention_scaled(tensor_reshape(t, [1, 2, 3]), tensor_reshape(t, [1, 2, 3]), tensor_reshape(t, [1, 2, 3]))[0] }, x)
check("lstm", fn(t: tensor) -> tensor { lstm_forward(lstm_create(3, 2), tensor_reshape(t, [1, 2, 3])) }, x)
check("gru", fn(t: tensor) -> tensor { gru_forward(gru_create(3, 2), tensor_reshape(t, [1, 2, 3])) }, x)
check("dropout", fn(t: tensor) -> tensor { layer_forward(dropout(0.5), t) }, x)

// expect
// relu true
// sigmoid true
// tanh true
// softmax true
// gelu true
// elu true
// leaky true
// matmul true
// transpose true
// reshape true
// concat true
// divide true
// exp true
// row true
// layernorm true
// batchnorm true
// attention true
// lstm true
// gru true
// dropout true

// Attention gives output and weights.
let q = tensor([1.0, 0.0, 0.0, 1.0], [1, 2, 2])
let r = attention_scaled(q, q, q)
print(r[0], r[1])
let c = attention_scaled(q, q, q, attention_mask_causal(2))
print(c[1], attention_mask_causal(3))
let m = attention_multi_head(q, q, q, 2, 2)
print(tensor_shape(m[0]), tensor_shape(m[1]))
let s = attention_self(q, 2, 2, 1)
print(s[0])
print(positional_encoding(2, 4))

// expect
// AutogradTensor([0.6697615493266569, 0.3302384506733431, 0.3302384506733431, 0.6697615493266569], shape=[1, 2, 2]) AutogradTensor([0.6697615493266569, 0.3302384506733431, 0.3302384506733431, 0.6697615493266569], shape=[1, 2, 2])
// AutogradTensor([1.0, 0.0, 0.3302384506733431, 0.6697615493266569], shape=[1, 2, 2]) AutogradTensor([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0], shape=[3, 3])
// [1, 2, 2] [1, 2, 2, 2]
// AutogradTensor([0.021274545092973943, 0.043147223630795165], shape=[1, 2, 1])
// AutogradTensor([0.0, 1.0, 0.0, 1.0, 0.8414709848078965, 0.5403023058681398, 0.009999833334166664, 0.9999500004166653], shape=[2, 4])

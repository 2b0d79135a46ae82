// Seeded random numbers are the same everywhere.
print(tensor_randn_seeded([2, 3], 42))
print(tensor_shape(tensor_randn([3, 2])), tensor_size(tensor_rand([4])), random_normal([2], 7) == tensor_randn_seeded([2], 7))
let u = random_uniform([100], 1)
print(tensor_min(u) >= 0.0, tensor_max(u) < 1.0, tensor_mean(u) > 0.3)

// expect
// AutogradTensor([-1.0920367461723526, -0.7892423657138325, -2.234709428724135, 0.45579326716731466, 2.014737525345475, -0.3745982081102117], shape=[2, 3])
// [3, 2] 4 true
// true true true

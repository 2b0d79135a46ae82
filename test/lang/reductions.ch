// Sums, means, extremes.
let m = tensor([1.0, 5.0, 3.0, 4.0, 2.0, 6.0], [2, 3])
print(tensor_sum(m), tensor_mean(m), tensor_max(m), tensor_min(m), argmax(m))
print(sum(m), mean(m), max(m), min(m), sum(m, axis: 0), mean(m, axis: 1), argmax(m, axis: 1), argmax(m, axis: 0))

// expect
// 21.0 3.5 6.0 1.0 5
// 21.0 3.5 6.0 1.0 AutogradTensor([5.0, 7.0, 9.0], shape=[3]) AutogradTensor([3.0, 4.0], shape=[2]) [1, 2] [1, 0, 1]

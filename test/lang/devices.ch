// There is no GPU.
print(gpu_available(), gpu_info(), tensor_device(tensor([1.0])), tensor_to_cpu(tensor([2.0])))
if gpu_available() { print(tensor_to_gpu(tensor([1.0]))) }

// expect
// false No GPU available CPU AutogradTensor([2.0], shape=[1])

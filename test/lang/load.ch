// Pictures and tables.
let row: tensor<float32, [1, 6]> = load_image("test/lang/data/six.png")
print(row * 255.0)
let colours = load_image("test/lang/data/six.png", 3)
print(tensor_shape(colours), colours[0][0], colours[0][2])
print(tensor_shape(load_image("test/lang/data/six.png", channels: 1)))
print(load_data("test/lang/data/table.csv"))
let x: tensor<float32, [3]> = load_data("test/lang/data/list.csv")
print(x)

// expect
// AutogradTensor([76.0, 150.0, 29.0, 255.0, 0.0, 51.0], shape=[1, 6])
// [1, 3, 2, 3] AutogradTensor([1.0, 0.0, 0.0, 1.0, 0.0, 0.2], shape=[2, 3]) AutogradTensor([0.0, 0.0, 1.0, 1.0, 0.0, 0.2], shape=[2, 3])
// [1, 1, 2, 3]
// AutogradTensor([1.0, 2.5, -300.0, 4.0, 5.0, 6.0], shape=[3, 2])
// AutogradTensor([0.5, 1.5, 2.5], shape=[3])

// Objects have kinds: layers, optimizers, models with their functions.
let layer = linear(2, 3)
let opt = sgd_create(0.1)
print(layer_forward(opt, tensor_ones([1, 2])))
print(sgd_step(layer, [tensor_ones([1])]))
print(adam_step(opt, [tensor_ones([1])]))
model Net { layers { dense(2, 3) } }
let m = Net()
m.fit(tensor_ones([1, 2]))
m.stepp(opt)
m.step()
print(m.forward(tensor_ones([1, 2])) + tensor_ones([4]))
let n = Net(3)
print(m.parameters() + 1)
layer_forward(m, tensor_ones([1, 2]))

// error
// objects_wrong.ch:4:21: layer_forward() takes a layer here, found optimizer
// print(layer_forward(opt, tensor_ones([1, 2])))
// ^
// objects_wrong.ch:5:16: sgd_step() takes an optimizer of sgd_create() here, found layer
// print(sgd_step(layer, [tensor_ones([1])]))
// ^
// objects_wrong.ch:6:17: adam_step() takes an optimizer of adam_create() here, found optimizer
// print(adam_step(opt, [tensor_ones([1])]))
// ^
// objects_wrong.ch:9:3: a model has no function 'fit'
// m.fit(tensor_ones([1, 2]))
// ^
// objects_wrong.ch:10:3: a model has no function 'stepp'
// m.stepp(opt)
// ^
// hint: did you mean 'step'?
// objects_wrong.ch:11:3: step() of a model takes 1 arguments, got 0
// m.step()
// ^
// objects_wrong.ch:12:38: +: shapes of tensor<float64, [1, 3]> and tensor<float64, [4]> do not fit
// print(m.forward(tensor_ones([1, 2])) + tensor_ones([4]))
// ^
// objects_wrong.ch:13:9: the model 'Net' takes 0 arguments, got 1
// let n = Net(3)
// ^
// objects_wrong.ch:14:22: Cannot add array and integer
// print(m.parameters() + 1)
// ^
// hint: a + [x] appends an element
// objects_wrong.ch:15:15: layer_forward() takes a layer here, found Net
// layer_forward(m, tensor_ones([1, 2]))
// ^

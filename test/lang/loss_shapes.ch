// A column and a row have as many numbers, and are not the same.
let v = tensor([1.0, 2.0, 3.0, 4.0])
print(loss_mse(reshape(v, [4, 1]), v), loss_mse(v, reshape(v, [1, 4])))
print(loss_mse(reshape(v, [4, 1]), late(reshape(v, [1, 4]))))
// what is not known before the run is found then
fn late(t: any) { t }

// expect
// 0.0 0.0

// error
// loss_shapes.ch:4:7: loss_mse(): shape mismatch [4, 1] vs [1, 4]
// print(loss_mse(reshape(v, [4, 1]), late(reshape(v, [1, 4]))))
// ^

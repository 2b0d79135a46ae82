// Shapes that do not fit.
let a = tensor([1.0, 2.0])
print(tensor_shape(a))
print(tensor_add(a, late(tensor([1.0, 2.0, 3.0]))))
// what is not known before the run is found then
fn late(t: any) { t }

// expect
// [2]

// error
// shape_mismatch.ch:4:7: tensor_add(): shape mismatch [2] vs [3]
// print(tensor_add(a, late(tensor([1.0, 2.0, 3.0]))))
// ^

// Of two dimensions against one.
print(nn_binary_cross_entropy(tensor_full([2, 2], 0.5), late(tensor_full([4], 1.0))))
// what is not known before the run is found then
fn late(t: any) { t }

// error
// bce_shapes.ch:2:7: nn_binary_cross_entropy(): shape mismatch [2, 2] vs [4]
// print(nn_binary_cross_entropy(tensor_full([2, 2], 0.5), late(tensor_full([4], 1.0))))
// ^

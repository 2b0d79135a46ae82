// Data that do not fill the shape.
print(tensor([1.0, 2.0, 3.0], [2, 2]))

// error
// data_mismatch.ch:2:7: tensor() shape [2, 2] (total: 4) does not match data length 3
// print(tensor([1.0, 2.0, 3.0], [2, 2]))
// ^

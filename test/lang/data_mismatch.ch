// Data that do not fill the shape.
print(tensor([1.0, 2.0, 3.0], late([2, 2])))
// what is not known before the run is found then
fn late(t: any) { t }

// error
// data_mismatch.ch:2:7: tensor() shape [2, 2] (total: 4) does not match data length 3
// print(tensor([1.0, 2.0, 3.0], late([2, 2])))
// ^

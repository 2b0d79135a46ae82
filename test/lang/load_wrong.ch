// What is no table is refused with its line.
print(tensor_shape(load_data("test/lang/data/table.csv")))
print(load_data("test/lang/data/ragged.csv"))

// expect
// [3, 2]

// error
// load_wrong.ch:3:7: test/lang/data/ragged.csv: line 2 has 1 columns, those before it 2
// print(load_data("test/lang/data/ragged.csv"))
// ^

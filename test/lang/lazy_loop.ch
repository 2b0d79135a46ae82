// A long chain that nobody looks at; a loop that only looks at the end.
let x = tensor([1.0])
for i in 0..5000 { x = tensor_add(x, tensor([0.001])) }
print(tensor_item(x) > 5.99, tensor_item(x) < 6.01)

// expect
// true true

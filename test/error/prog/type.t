# operands of different types
# run: opt --stop=none
# exit: 4
# expect-stderr: :3: operand 0 of add is f32x1, expected i64x1
prog p
buf y: out f32[4]
y[0] = 1.0 + 1

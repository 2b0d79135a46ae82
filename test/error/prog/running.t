# an index that turns out to leave its buffer while running
# run: run FILE --engine interp
# exit: 5
# expect-stderr: interp: index 9 out of bounds: dimension 0 of y has extent 4
prog p
buf k: const i64[1] = {9}
buf y: out f32[4]
y[k[0]] = 1.0

# operands of a shuffle are of one length
# run: opt --stop=none
# exit: 4
# expect-stderr: :4: shuffle to f32x3 has invalid operands
prog
buf x: in f32[8]
buf y: out f32[3]
y[0:3] = shuffle.0.4.8(x[0:4], x[4:4], x[0:2])

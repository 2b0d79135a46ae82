# a fragment has the size of an operand or of the sums of a product
# run: opt --stop=none
# exit: 4
# expect-stderr: a fragment of 16 rows and 128 elements of f16, expected 16 rows of 32 bytes
prog p
threads 65536
buf y: out f32[1]
buf a: reg f16x16x8[1]
y[0] = 1.0

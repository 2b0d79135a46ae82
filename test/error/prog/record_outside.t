# a loop outside of kernels has no record to which its role could belong
# run: opt --stop=none
# exit: 4
# expect-stderr: the kernel of the loop has no record 1
prog
buf x: in f32[4]
buf y: out f32[4]
for i in 0..4 as batch {
  y[i] = neg(x[i])
}

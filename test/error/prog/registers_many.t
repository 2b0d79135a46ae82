# registers become variables: there are not more of them than a compiler can take
# run: opt --stop=none
# exit: 4
# expect-stderr: r: more than 16384 registers
prog p
buf y: out f32[8]
buf r: reg f32[7000,7000]
y[0] = r[0, 0]

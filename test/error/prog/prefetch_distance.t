# memory is fetched ahead by a number of bytes that is there, and not far off
# run: opt --stop=none
# exit: 4
# expect-stderr: prefetch distance: expected 1 to 1048576 bytes, found 0
prog p
buf x: in f32[8]
buf y: out f32[8]
buf acc: reg f32x8[]
prefetch 0 acc[] = x[0:8]
y[0:8] = acc[]

# memory is fetched ahead by a number of bytes that is there, and not far off
# run: opt --stop=none
# exit: 4
# expect-stderr: ahead 0: from 1 to 1048576 bytes
prog p
buf x: in f32[8]
buf y: out f32[8]
buf acc: reg f32x8[]
ahead 0 acc[] = x[0:8]
y[0:8] = acc[]

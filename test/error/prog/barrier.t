# registers are not loaded from memory: there is nothing to keep behind a barrier
# run: opt --stop=none
# exit: 4
# expect-stderr: :4: a fence needs a buffer in memory, acc is a register buffer
prog p
buf y: out f32[8]
buf acc: reg f32x8[]
fence acc
y[0:8] = acc[]

# registers are not loaded from memory: there is nothing to keep behind a barrier
# run: opt --stop=none
# exit: 4
# expect-stderr: :4: a barrier is for loads from memory, acc is registers
prog p
buf y: out f32[8]
buf acc: reg f32x8[]
fence acc
y[0:8] = acc[]

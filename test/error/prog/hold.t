# memory holds nothing: only registers do
# run: opt --stop=none
# exit: 4
# expect-stderr: :4: flags pin and prefetch are for register buffers, y is in memory
prog p
buf x: in f32[8]
buf y: out f32[8]
pin y[0:8] = x[0:8]

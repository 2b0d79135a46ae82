# a pass of graphs is refused on a program, and the message names the options that help
# run: opt
# exit: 2
# expect-stderr: pass infer works on a graph, found a program: start at a later pass with --start, or run none with --stop=none
prog p
buf x: in f32[8]
buf y: out f32[8]
y[0:8] = x[0:8]

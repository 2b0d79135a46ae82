# a symbol of the data that no node sets
# run: opt --stop=none
# exit: 4
# expect-stderr: symbol n is used before a node sets it
graph
sym n data in 0..4
(%x: f32[n]) { return %x }

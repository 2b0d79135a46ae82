# bounds the wrong way round
# run: opt --stop=none
# exit: 4
# expect-stderr: bounds 5..2, expected 0 <= lower <= upper
graph
sym n in 5..2
(%x: f32[n]) { return %x }

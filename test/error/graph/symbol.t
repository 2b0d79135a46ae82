# a dimension nobody has declared
# run: opt --stop=none
# exit: 4
# expect-stderr: :1: unknown dimension n
graph (%x: f32[n]) { return %x }

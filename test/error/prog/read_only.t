# a store to an input through a view
# run: opt --stop=none
# exit: 4
# expect-stderr: :4: store to v, which is read-only
prog p
buf x: in f32[4]
buf v: temp f32[2,2] alias x
v[0, 0] = 1.0

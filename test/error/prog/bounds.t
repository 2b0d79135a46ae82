# an index that leaves its buffer for sure
# run: opt --stop=none
# exit: 4
# expect-stderr: :5: index 0 of y ranges from 0 to 4, but its extent is 4
prog p
buf y: out f32[4]

for i in 0..5 {
  y[i] = 1.0
}

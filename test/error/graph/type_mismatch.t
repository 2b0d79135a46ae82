# the type written is not the one inferred
# run: opt --stop=none
# exit: 4
# expect-stderr: :3: %y is written as f32[3], but add gives f32[2]
graph
(%x: f32[2]) {
  %y: f32[3] = add(%x, %x)
  return %y
}

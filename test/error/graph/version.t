# a text of a later version is refused, and the message names the version
# run: opt --stop=none
# exit: 4
# expect-stderr: text form version: expected 1 to 2, found 3; a newer ingot wrote this file
ingot 3
graph
(%x: f32[2]) {
  return %x
}

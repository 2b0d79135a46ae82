# a variable behind the end of its list
# run: opt --stop=none
# exit: 4
# expect-stderr: :6: no variable that is visible here is called t
prog p
buf y: out f32[4]
if true {
  let t: f32 = 1.0
}
y[0] = t

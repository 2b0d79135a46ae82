# a variable behind the end of its list
# run: opt --stop=none
# exit: 4
# expect-stderr: :6: unknown variable t; it is not declared or not visible here
prog p
buf y: out f32[4]
if true {
  let t: f32 = 1.0
}
y[0] = t

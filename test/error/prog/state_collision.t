# what is kept from run to run shares its place with nothing
# run: opt --stop=none
# exit: 4
# expect-stderr: h and t overlap while both are live
prog bad
arena 64
buf h: state f32[4] at 0
buf t: temp f32[4] at 0
buf y: out f32[4]
kernel "a" {
  for i in 0..4 {
    t[i] = 1.0
  }
}
kernel "b" {
  for i in 0..4 {
    y[i] = t[i]
  }
}

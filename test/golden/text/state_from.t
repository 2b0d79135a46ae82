# a state that begins with other contents than zeros
# run: --stop=none
graph (%x "x": f32[2], %h "h": f32[2]) {
  %y: f32[2] = add(%x, %h)
  return %y "y", %y "h.next" next %h from {0.5, -1}
}

# expect
ingot 2
graph
(%1 "x": f32[2], %2 "h": f32[2]) {
  %3: f32[2] = add(%1, %2)
  return %3 "y", %3 "h.next" next %2 from {0.5, -1}
}

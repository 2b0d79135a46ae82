# equal nodes, also with operands in the other order
# run: --start=cse --stop=cse
graph
(%x: f32[2], %y: f32[2]) {
  %a: f32[2] = add(%x, %y)
  %b: f32[2] = add(%y, %x)
  %c: f32[2] = sub(%x, %y)
  %d: f32[2] = sub(%y, %x)
  %e: f32[2] = mul(%a, %c)
  %f: f32[2] = mul(%b, %c)
  return %d, %e, %f
}

# expect
ingot 2
graph
(%1: f32[2], %2: f32[2]) {
  %3: f32[2] = add(%1, %2)
  %4: f32[2] = sub(%1, %2)
  %5: f32[2] = sub(%2, %1)
  %6: f32[2] = mul(%3, %4)
  return %5, %6, %6
}

# C text is made for a machine of the table.
# run: compile --march z80
# exit: 2
# expect-stderr: --march: unknown target 'z80'; expected native, multi, scalar, cortex-m, cortex-m4
prog one
buf y: out f32[1]
kernel "k" {
  y[0] = 1.0
}

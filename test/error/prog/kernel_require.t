# a run ends in the entry, not in a kernel
# run: compile
# exit: 3
# expect-stderr: :4: a condition that ends the run stands in a kernel
prog p
buf y: out f32[1]
kernel "one" {
  require 1 < 2 else "small"
  y[0] = 1.0
}

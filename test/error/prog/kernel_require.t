# what ends a kernel must end the run behind it
# run: compile
# exit: 3
# expect-stderr: :4: a condition required in a kernel is not required again after it
prog p
buf y: out f32[1]
kernel "one" {
  require 1 < 2 else "small"
  y[0] = 1.0
}

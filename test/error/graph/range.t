# an integer that does not fit its type
# run: opt --stop=none
# exit: 4
# expect-stderr: expected a value of i8, found 300
graph () {
  %a: i8[1] = const {300}
  return %a
}

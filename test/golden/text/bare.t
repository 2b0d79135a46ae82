# no name, no parameters, no results
# run: --stop=none
graph () { return }

# expect
ingot 2
graph
() {
  return
}

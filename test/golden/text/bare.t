# no name, no parameters, no results
# run: --stop=none
graph () { return }

# expect
graph
() {
  return
}

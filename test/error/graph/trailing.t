# something behind the graph
# run: opt --stop=none
# exit: 4
# expect-stderr: :2: expected the end of the text, found more
graph () { return }
more

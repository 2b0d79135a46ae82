# stop before start
# run: opt --start=dce --stop=infer
# exit: 2
# expect-stderr: --stop=infer comes before --start=dce
graph () { return }

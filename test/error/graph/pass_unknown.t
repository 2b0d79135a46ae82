# a pass that does not exist
# run: opt --stop=frob
# exit: 2
# expect-stderr: expected one of the passes infer, strings, quant, dequantize, fold, simplify, cse
graph () { return }

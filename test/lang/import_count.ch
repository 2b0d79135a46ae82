// A network is called with all of its inputs: none is made up.
import "../../models/digits.onnx" as net
net()

// error
// import_count.ch:3:1:
// the network takes 1 tensor, found 0

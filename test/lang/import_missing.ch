// A network that is not there.
import "nothing.onnx" as net
print("begin")
net(tensor([1.0]))

// expect
// begin

// error
// import_missing.ch:4:1:
// nothing.onnx: cannot open: No such file or directory
// net(tensor([1.0]))
// ^

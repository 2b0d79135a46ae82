// Text IR is a network like any other file: its argument is its input.
import "import_text.ing" as net
print(net(tensor([0.0, 2.0])))

// expect
// AutogradTensor([0.0, 6.0], shape=[2])

# an index that wraps around when it is flattened is refused before any engine runs
# run: run --engine vm
# exit: 4
# expect-stderr: :6: index 1 of W has a term with factor 9223372036854775807, expected at most 549755813888
prog
buf W: in f32[2,1,2]
buf y: out f32[1]
kernel "k" {
  if W[0, 0, 0] > 0.0 {
    y[0] = W[1, 9223372036854775807, 0]
  }
}

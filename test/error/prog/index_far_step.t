# so is one whose loop variable has such a factor
# run: run --engine interp
# exit: 4
# expect-stderr: :6: index 0 of W has a term with factor 4611686018427387904, expected at most 549755813888
prog
buf W: in f32[2,2]
buf y: out f32[5]
kernel "k" {
  for l in 0..5 {
    y[l] = W[l * 4611686018427387904, 0]
  }
}

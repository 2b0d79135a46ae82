# A loop marked parallel that is not all of its kernel is no loop to share.
# input x = f32[4] {1, 2, 3, 4}
# output a = f32[4] {1, 4, 9, 16}
# output b = f32[4] {2, 8, 18, 32}
prog
threads 2
buf x: in f32[4]
buf a: out f32[4]
buf b: out f32[4]
kernel "two" {
  for i in 0..4 parallel {
    a[i] = x[i] * x[i]
  }
  for j in 0..4 {
    b[j] = a[j] + a[j]
  }
}

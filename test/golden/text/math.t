# the mathematics a program means; a name that is a word of the header
# run: --stop=none
prog "math"
sym n in 1..8
math fused
buf "math": in f32[n]
buf y: out f32[n]
for i in 0..n { y[i] = exp("math"[i]) }

# expect
ingot 2
prog "math"
sym n in 1..8
math fused
buf "math": in f32[n]
buf y: out f32[n]
for i in 0..n {
  y[i] = exp("math"[i])
}

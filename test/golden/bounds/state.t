# a size that comes from the state: the condition names it, so that back ends can tell the caller
# run: --start=bounds
prog
sym u data in 0..4
buf size: state i64[1]
buf kept: state f32[4]
buf y: out f32[u]
set u = size[0]
kernel "copy" {
  for i in 0..u {
    y[i] = kept[i]
  }
}

# expect
ingot 2
prog
sym u data in 0..4
buf size: state i64[1]
buf kept: state f32[4]
buf y: out f32[u]
set u = size[0]
require and(size[0] >= 0, size[0] <= 4) else "the size u, which the run computes, is outside of its bounds 0 to 4"
kernel "copy" {
  for i in 0..u {
    y[i] = kept[i]
  }
}

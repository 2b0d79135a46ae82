# without vectors halves save memory: nothing changes
# run: --start=widen_f16 --stop=widen_f16
graph scalar
(%1 "a": f16[4]) {
  %2: f16[4] = exp(%1)
  %3: f16[4] = neg(%2)
  return %3 "y"
}

# expect
ingot 2
graph scalar
(%1 "a": f16[4]) {
  %2: f16[4] = exp(%1)
  %3: f16[4] = neg(%2)
  return %3 "y"
}

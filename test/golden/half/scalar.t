# without vectors halves save memory: nothing changes
# run: --start=half --stop=half
graph scalar
(%1 "a": f16[4]) {
  %2: f16[4] = exp(%1)
  %3: f16[4] = neg(%2)
  return %3 "y"
}

# expect
graph scalar
(%1 "a": f16[4]) {
  %2: f16[4] = exp(%1)
  %3: f16[4] = neg(%2)
  return %3 "y"
}

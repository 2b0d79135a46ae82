# Numbers in [0,1), the same for the same seed, others for another seed.
# output in = bool[] {true}
# output same = bool[] {true}
# output other = bool[] {false}
# output mean = bool[] {true}
graph () {
  %a: f32[1000] = random {shape = [1000], to = f32, seed = 1}
  %b: f32[1000] = random {shape = [1000], to = f32, seed = 1}
  %c: f32[1000] = random {shape = [1000], to = f32, seed = 2}
  %zero: f32[] = const {0}
  %one: f32[] = const {1}
  %lo: bool[1000] = ge(%a, %zero)
  %hi: bool[1000] = lt(%a, %one)
  %both: bool[1000] = and(%lo, %hi)
  %in: bool[] = reduce_min(%both) {axes = [0], keep = 0}
  %eq: bool[1000] = eq(%a, %b)
  %same: bool[] = reduce_min(%eq) {axes = [0], keep = 0}
  %ne: bool[1000] = eq(%a, %c)
  %other: bool[] = reduce_max(%ne) {axes = [0], keep = 0}
  %sum: f32[] = reduce_sum(%a) {axes = [0], keep = 0}
  %l: f32[] = const {450}
  %h: f32[] = const {550}
  %above: bool[] = gt(%sum, %l)
  %below: bool[] = lt(%sum, %h)
  %mean: bool[] = and(%above, %below)
  return %in "in", %same "same", %other "other", %mean "mean"
}

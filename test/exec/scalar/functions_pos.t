# Functions of numbers from 1.
# tol: 2e-7 1e-9
# input a = f32[4] {1, 1.5, 2, 100}
# output log = f32[4] {0, 0.40546509623527527, 0.6931471824645996, 4.605170249938965}
# output acosh = f32[4] {0, 0.9624236226081848, 1.316957950592041, 5.29829216003418}
graph (%a "a": f32[4]) {
  %log: f32[4] = log(%a)
  %acosh: f32[4] = acosh(%a)
  return %log "log", %acosh "acosh"
}

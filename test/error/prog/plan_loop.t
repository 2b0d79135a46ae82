# a value carried through a loop, overwritten by one that lives inside it
# run: opt --stop=none
# exit: 4
# expect-stderr: overlap while both are live
prog p
arena 128
buf y: out f32[32]
buf s: temp f32[32] at 0
buf t: temp f32[32] at 0
let k: i64 = 0
while k < 3 {
  kernel "use" {
    for i in 0..32 {
      y[i] = s[i]
    }
  }
  kernel "s" {
    for i in 0..32 {
      s[i] = 2.0
    }
  }
  kernel "t" {
    for i in 0..32 {
      t[i] = 1.0
    }
  }
  kernel "y" {
    for i in 0..32 {
      y[i] = t[i]
    }
  }
  set k = k + 1
}

# A symbol that is set while running: the shape of the output follows it. Views, while, if, wrapping integers.
# input x = i32[2,3] {5, 0, -2, 0, 0, 7}
# output found = i64[3,2] {0, 0, 0, 2, 1, 2}
# output sum = u8[] {10}
# output steps = i64[] {6}
prog find
sym k data in 0..6
buf x: in i32[2,3]
buf found: out i64[k,2]
buf sum: out u8[]
buf steps: out i64[]
buf flat: temp i32[6] alias x
let n: i64 = 0
let s: u8 = 0:u8
for i in 0..6 {
  if flat[i] != 0:i32 {
    set n = n + 1
  }
  set s = s + cast.u8(flat[i])
}
set k = n
set n = 0
let i: i64 = 0
while i < 6 {
  if flat[i] != 0:i32 {
    found[n, 0] = div(i, 3)
    found[n, 1] = mod(i, 3)
    set n = n + 1
  } else {
    set n = n + 0
  }
  set i = i + 1
}
sum[] = s
steps[] = i

// A variable keeps its kind: what is assigned or pushed is of the same, `let` may define the name anew. Numbers and tensors mix.
let count = 5
count = 2.5
let loss = 0.0
loss = tensor([1.0, 2.0])
let count = "text"
count = "other"
let rows = []
rows = rows + [[1]]
rows[0] = [2.5]
count = 7
rows[0] = "row"
rows[0][0] = true
push(rows, 3)
fn change() { state = "late" }
let state = (1, "a")
state = (2.5, "b")
state = (1, 2)
let call = fn(x: int32) -> int32 { x }
call = change
call = fn(x: int32) -> int32 { x + 1 }

// error
// assign_kinds.ch:11:9: the variable is string, found integer
// hint: a new 'let' may make it another kind
// assign_kinds.ch:12:11: elements are [float], found string
// assign_kinds.ch:13:14: elements are float, found boolean
// assign_kinds.ch:14:12: elements are [float], found integer
// assign_kinds.ch:15:23: the variable is (float, string), found string
// assign_kinds.ch:18:9: the variable is (float, string), found (integer, integer)
// assign_kinds.ch:20:8: the variable is fn(integer) -> anything, found fn() -> (float, string)

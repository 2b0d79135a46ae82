// Tuples of any length; .n on an array is an index.
let t = (1, "two", (3.5, [4]))
print(t.0, t.1, t.2, (t.2).0, t.2.1, (99,), ())
print([7, 8].1)
fn pair(x: int32) -> (int32, string) { (x, "n" + str(x)) }
let p = pair(3)
print(p.0 + 1, p.1)

// expect
// 1 two (3.5, [4]) 3.5 [4] (99) ()
// 8
// 4 n3

// Jumps out of the middle of expressions, values of loops and blocks, functions in functions: what a compiled program must get right.
import "modules/counter.ch" as counter
struct Item { name: string, tags: [string], score: float64 }
fn first_long(words: [string], n: int32) {
    let seen = []
    for w in words {
        let pair = (w, if len(w) < n { continue } else { w + "!" }, [w, w])
        if pair.1 == "stop!" { break }
        seen = seen + [pair]
    }
    seen
}
print(first_long(["a", "bb", "ccc", "dddd", "stop", "eeee"], 3))
fn early(n: int32) {
    let t = ["kept", match n { 0 => { return "zero" } 1 => "one" m => { if m > 5 { return [m, m] } "few" } }]
    t
}
print(early(0), early(1), early(3), early(7))
fn last(n: int32) { for i in 0..n { if i == 5 { break } [i, "turn"] } }
fn counted(n: int32) { let i = 0 while i < n { i = i + 1 str(i) } }
print(last(3), last(0), last(9), counted(4))
fn outer(base: string) {
    fn fact(n: int32) -> int32 { if n < 2 { 1 } else { n * fact(n - 1) } }
    fn tagged(n: int32) { base + str(fact(n)) }
    [tagged, fn(n: int32) { tagged(n) + tagged(n + 1) }]
}
let fs = outer("f=")
print(fs[0](4), fs[1](2))
let items = [Item { name: "x", tags: [], score: 1 }, Item { name: "y", tags: ["t"], score: 2.5 }]
for i in 0..2 {
    push(items[i].tags, "n" + str(i))
    items[i].score = items[i].score * 2
}
let copy = items
copy[0].tags[0] = "changed"
print(items, copy[0].tags, items == copy)
print(counter.next() + counter.next(), counter.count)
let both = 1 < 2 and fs[0](1) == "f=1" or counter.next() > 100
print(both, counter.count)
fn nothing() { }
print(nothing(), type(nothing), "\ttab \"quoted\"")

// expect
// counter runs
// [(ccc, ccc!, [ccc, ccc]), (dddd, dddd!, [dddd, dddd])]
// zero [kept, one] [kept, few] [7, 7]
// [2, turn] null null 4
// f=24 f=2f=6
// [Item { name: x, tags: [n0], score: 2.0 }, Item { name: y, tags: [t, n1], score: 5.0 }] [changed] false
// 3 2
// true 2
// null function 	tab "quoted"

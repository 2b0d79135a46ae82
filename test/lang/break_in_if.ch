// break ends the loop at once, also inside an if.
for i in 0..3 {
    if i == 1 {
        break
        print("never")
    }
    print(i)
}
fn f() { for i in 0..10 { if i == 3 { return i } } }
for k in 0..2 { print(f()) }

// expect
// 0
// 3
// 3

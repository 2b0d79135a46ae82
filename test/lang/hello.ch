// A program that only defines main has it called.
fn main() {
    print("hello")
}

// expect
// hello

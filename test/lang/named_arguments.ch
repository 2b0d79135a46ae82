// Arguments by name stand where their parameters are.
fn describe(name: string, size: int32, colour: string) -> string { name + " " + str(size) + " " + colour }
print(describe("box", colour: "red", size: 3), describe(size: 1, name: "a", colour: "b"))
print(pow(b: 3, a: 2))

// expect
// box 3 red a 1 b
// 8.0

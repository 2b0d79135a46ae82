// A graph that is met late in a long loop whose other turns have none.
let t = tensor([1.0, 2.0, 3.0, 4.0], [2, 2])
let acc = 0
for i in 0..1200000 {
    acc = acc + i
    if i == 1100000 { print(tensor_sum(t @ t)) }
}
print(acc)

// expect
// 54.0
// 719999400000

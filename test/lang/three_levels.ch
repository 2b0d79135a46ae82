// a[i][j][k] = v changes that element and no other.
let a = [[[0; 2]; 3]; 2]
a[1][2][0] = 5
print(a)

// expect
// [[[0, 0], [0, 0], [0, 0]], [[0, 0], [0, 0], [5, 0]]]

// Names and strings in UTF-8.
let größe = 3
let 变量 = "✅ 完成"
print(größe, 变量)

// expect
// 3 ✅ 完成

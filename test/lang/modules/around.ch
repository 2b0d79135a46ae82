import "back.ch" as back
let x = 1

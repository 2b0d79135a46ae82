import "around.ch" as around
let y = 2

// What Charl has and this language has not is refused by name.
let g = kg_create()

// error
// refused.ch:2:9: kg_create is not supported: ingot does not have knowledge graphs
// let g = kg_create()
// ^

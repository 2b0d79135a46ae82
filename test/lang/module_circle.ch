// Modules that import each other cannot run one before the other.
import "modules/around.ch" as around
print(around.x)

// error
// back.ch:1:8: modules import each other in a circle: 
// import "around.ch" as around
// ^

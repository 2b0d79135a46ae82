// Modules that import each other cannot run one before the other.
import "modules/around.ch" as around
print(around.x)

// error
// back.ch:1:8: modules import each other in a circle: /work/wt/g1/test/lang/modules/around.ch -> /work/wt/g1/test/lang/modules/back.ch -> /work/wt/g1/test/lang/modules/around.ch
// import "around.ch" as around
// ^

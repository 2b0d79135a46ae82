// A file that is not there is an error of the import.
import "modules/nothing.ch" as nothing
print(nothing.x)

// error
// module_missing.ch:2:8: cannot read '/work/wt/g1/test/lang/modules/nothing.ch': No such file or directory
// import "modules/nothing.ch" as nothing
// ^

// A file that is not there is an error of the import.
import "modules/nothing.ch" as nothing
print(nothing.x)

// error
// modules/nothing.ch': No such file or directory
// import "modules/nothing.ch" as nothing
// ^

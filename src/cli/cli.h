/* cli.h: the verbs of the command line. Each gets its own arguments, argv[0] being the verb, prints
 * results on stdout and messages on stderr, and returns the exit code. They use ingot.h alone.
 */
#ifndef INGOT_CLI_H
#define INGOT_CLI_H

/* demo.c */
int cmd_demo(int argc, char **argv);

#endif

/* For a board without a C library: see board.c. */
int puts(const char *text);
int printf(const char *form, ...);

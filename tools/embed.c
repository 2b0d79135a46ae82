/* embed NAME IN OUT: writes the bytes of file IN as a C source file OUT that defines
 *
 *   const unsigned char NAME[]; const size_t NAME_size;
 *
 * A build tool, run by the Makefile on the build machine. It writes numbers instead of a string,
 * since C guarantees only 4095 characters per string. The output depends only on NAME and the
 * bytes. The array is aligned like a mapped file, for readers that use weights in place. On failure
 * it exits with 1 and leaves no OUT. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int convert(const char *name, FILE *in, FILE *out) {
  fprintf(out, "#include <stddef.h>\n\n");
  fprintf(out, "extern const unsigned char %s[];\nextern const size_t %s_size;\n\n", name, name);
  fprintf(out, "_Alignas(64) const unsigned char %s[] = {", name);
  unsigned long n = 0;
  for (int byte; (byte = getc(in)) != EOF; n++) fprintf(out, "%s%d,", n % 24 ? "" : "\n  ", byte);
  if (n == 0) return fprintf(stderr, "embed: input is empty\n"), 1;
  fprintf(out, "\n};\n\nconst size_t %s_size = sizeof %s;\n", name, name);
  return ferror(in);
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: embed NAME IN OUT\n"), 1;
  FILE *in = fopen(argv[2], "rb");
  if (!in) return fprintf(stderr, "embed: %s: %s\n", argv[2], strerror(errno)), 1;
  FILE *out = fopen(argv[3], "wb");
  if (!out) return fprintf(stderr, "embed: %s: %s\n", argv[3], strerror(errno)), fclose(in), 1;
  int bad = convert(argv[1], in, out) | ferror(out);
  fclose(in);
  if (fclose(out) != 0 || bad) {
    fprintf(stderr, "embed: cannot write %s from %s\n", argv[3], argv[2]);
    remove(argv[3]);
    return 1;
  }
  return 0;
}

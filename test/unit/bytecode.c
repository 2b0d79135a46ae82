/* Files of bytecode: what is written is read again and computes the same; every change of a single
 * byte is refused, or harmless where the checksum has been made right again. */
#include "../fuzz/hostile.h"
#include "check.h"
#include "ingot.h"
#include <stdio.h>

/* A product of matrices and a function, of a shape that is open. */
static const char graph[] =
    "graph net\nsym n in 0..3\n(%x \"x\": f32[n,4]) {\n"
    "  %w: f32[4,5] = const {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}\n"
    "  %a: f32[n,5] = contract(%x, %w) {spec=\"mk,kn->mn\"}\n"
    "  %b \"b\": f32[n,5] = tanh(%a)\n"
    "  return %b \"b\"\n}\n";

typedef struct Made {
  u8 *at;
  size_t n;
} Made;

static Made make(void) {
  char path[] = "/tmp/ingot-bytecode-XXXXXX";
  Made f = {0};
  Ingot *m = ingot_new(NULL);
  int fd = mkstemp(path);
  if (!CHECK(fd >= 0)) return f;
  FILE *in = fdopen(fd, "rb");
  IngotStatus s = ingot_open_bytes(m, graph, sizeof graph - 1, "test");
  if (!s) s = ingot_write_vm(m, path);
  if (!CHECK(!s)) fprintf(stderr, "%s\n", ingot_message(m, 0, NULL));
  FILE *made = fopen(path, "rb");
  if (made && !s) {
    fseek(made, 0, SEEK_END);
    f.n = (size_t)ftell(made);
    rewind(made);
    f.at = aligned_alloc(64, f.n);
    if (fread(f.at, 1, f.n, made) != f.n) f.n = 0;
  }
  if (made) fclose(made);
  if (in) fclose(in);
  remove(path);
  ingot_free(m);
  return f;
}

static void every_byte(const Made *f) {
  static const u8 change[] = {0x01, 0x02, 0x10, 0x80, 0xff};
  u8 *copy = aligned_alloc(64, f->n);
  u32 ran = 0;
  for (size_t i = 0; i < f->n; i++)
    for (u32 k = 0; k < sizeof change; k++) {
      Igb g;
      u64 where;
      memcpy(copy, f->at, f->n);
      copy[i] ^= change[k];
      CHECK(igb_open(copy, f->n, &g, &where) != NULL);
      hostile_mend(copy, f->n);
      ran += hostile(copy, f->n);
    }
  CHECK(ran > 0); /* weights, and constants of the code */
  free(copy);
}

static void every_end(const Made *f) {
  Igb g;
  u64 where;
  for (size_t n = 0; n < f->n; n++) CHECK(igb_open(f->at, n, &g, &where) != NULL);
}

static Tensor *ones(Ctx *c) {
  Tensor *t = tensor_new(&c->keep, DT_f32, (i64[]){2, 4}, 2);
  for (u64 k = 0; k < t->n; k++) tensor_set(t, k, (Scalar){.f = 0.01});
  return t;
}

/* Who writes to the file while it is used changes weights at most. */
static void overwritten(Ctx *c, void *arg) {
  Made *f = arg;
  Tensor *in[] = {ones(c)}, *out[2];
  const IgbHead *h = (const IgbHead *)(const void *)f->at;
  u64 weights = h->section[IS_weights].at;
  VmProgram *v = vm_read(c, f->at, f->n, &c->keep);
  vm_run(v, NULL, in, &out[0], &c->keep);
  memset(f->at, 0xff, weights);
  vm_run(v, NULL, in, &out[1], &c->keep);
  CHECK(tensor_bytes(out[0]) == 2 * 5 * 4 && tensor_equal(c, out[0], out[1]));
}

/* Code that counts further than anybody waits: a panel with 2^39 iterations in 2^39 loops. */
static void make_endless(u8 *at, size_t n) {
  IgbHead *h = (IgbHead *)(void *)at;
  u32 *code = (u32 *)(void *)(at + h->section[IS_code].at);
  u8 *starts = at + h->section[IS_starts].at;
  VmInit *init = (VmInit *)(void *)(at + h->section[IS_init].at);
  const u64 words = h->section[IS_code].n;
  const u32 panel[22] = {
      VM_panel | 1u << 16, 0, 1, 1, VP_fma_b, 1, 1, 1, 0, 2, 0, 0, 0, 0, 0, 0, 2};
  if (!CHECK(words > 22 && h->section[IS_init].n && h->slots > 3)) return;
  memcpy(code, panel, sizeof panel);
  memset(starts, 0, (words + 7) / 8);
  starts[0] = 1;
  for (u64 i = 22; i < words; i++) {
    code[i] = VM_stop;
    starts[i / 8] |= (u8)(1 << i % 8);
  }
  for (u64 i = 0; i < h->section[IS_symbols].n; i++)
    ((IgbSymbol *)(void *)(at + h->section[IS_symbols].at))[i].slot = 0;
  for (u64 i = 0; i < h->section[IS_init].n; i++) init[i] = (VmInit){(u64)1 << 39, 1, 0};
  hostile_mend(at, n);
}

static void endless(Ctx *c, void *arg) {
  Made *f = arg;
  Tensor *in[] = {ones(c)}, *out[1];
  vm_run(vm_read(c, f->at, f->n, &c->keep), NULL, in, out, &c->keep);
}

/* Memory is that of a run: a file can be looked at that states more than there is. */
static void enormous(Ctx *c, void *arg) {
  Made *f = arg;
  CHECK(vm_facts(vm_read(c, f->at, f->n, &c->keep)).arena == (u64)IGB_MAX);
}

static void changed(const Made *f) {
  Made copy = {aligned_alloc(64, f->n), f->n};
  Ctx *c = ctx_new(NULL, NULL);
  memcpy(copy.at, f->at, f->n);
  CHECK(ctx_protect(c, overwritten, &copy) == ERR_ok);
  memcpy(copy.at, f->at, f->n);
  make_endless(copy.at, copy.n);
  CHECK(ctx_protect(c, endless, &copy) == ERR_input);
  memcpy(copy.at, f->at, f->n);
  IgbHead *h = (IgbHead *)(void *)copy.at;
  IgbBuf *b = (IgbBuf *)(void *)(copy.at + h->section[IS_buffers].at);
  h->arena = (u64)IGB_MAX;
  hostile_mend(copy.at, copy.n);
  CHECK(ctx_protect(c, enormous, &copy) == ERR_input); /* no buffer uses it */
  for (u64 i = 0; i < h->section[IS_buffers].n; i++)
    if (b[i].space == IB_weights) b[i] = (IgbBuf){.space = IB_arena, .bytes = (u64)IGB_MAX};
  hostile_mend(copy.at, copy.n);
  CHECK(ctx_protect(c, enormous, &copy) == ERR_ok);
  ctx_free(c);
  free(copy.at);
}

/* An extent that needs more numbers at a time than the stack of a file has. */
static void deep(void) {
  Ctx *c = ctx_new(NULL, NULL);
  Ingot *m = ingot_new(NULL);
  StrBuf shape = sb_new(&c->keep), t = sb_new(&c->keep);
  for (u32 i = 0; i < 12; i++) sb_puts(&shape, "min(m+1,(n*");
  sb_puts(&shape, "n");
  for (u32 i = 0; i < 12; i++) sb_puts(&shape, ")%3)");
  const char *d = sb_cstr(&shape);
  sb_fmt(&t,
         "graph net\nsym n in 1..3\nsym m in 1..3\n(%%x \"x\": f32[n], %%y \"y\": f32[m]) {\n"
         "  %%b \"b\": f32[%s] = iota {shape=[%s], axis=0, to=f32}\n  return %%b \"b\"\n}\n",
         d, d);
  IngotStatus s = ingot_open_bytes(m, t.at, t.n, "test");
  CHECK(!s);
  s = ingot_write_vm(m, "/nonexistent/file");
  CHECK(s == INGOT_UNSUPPORTED && strstr(ingot_message(m, 0, NULL), "too deep"));
  ingot_free(m);
  ctx_free(c);
}

/* Rows that change places are other tables. */
static void tables(void) {
  static const char *const row[] = {"stop ", "jmp j", "jmp ", "stop j"};
  CHECK(igb_rows(row, 2) != igb_rows((const char *const[]){row[1], row[0]}, 2));
  CHECK(igb_rows(row, 2) != igb_rows(row + 2, 2) && igb_rows(row, 2) != igb_rows(row, 3));
}

int main(void) {
  Made f = make();
  if (!CHECK(f.n)) return check_end();
  CHECK(hostile(f.at, f.n));
  changed(&f);
  deep();
  tables();
  every_end(&f);
  every_byte(&f);
  free(f.at);
  return check_end();
}

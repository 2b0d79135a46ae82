/* Bytecode as text: what vm_print writes, vm_parse reads, to the word; what is broken is refused.
 */
#include "check.h"
#include "back/vm/vm.h"
#include <string.h>

/* Rows, a fold, a vector with a shuffle, a branch, a conversion, a function, a requirement. */
static const char program[] =
    "prog p\nsym n in 1..64\nbuf x: in f32[n,16]\nbuf i: in i64[n]\nbuf y: out f32[n,16]\n"
    "buf q: out i8[n]\nbuf s: out f32[]\nlet sum: f32 = 0.0\nkernel \"k\" {\n"
    "for j in 0..n {\n  y[j, 0:16] = shuffle.15.14.13.12.11.10.9.8.7.6.5.4.3.2.1.0(exp(x[j, "
    "0:16]))\n"
    "  if i[j] < 3 { set sum = sum + reduce.add(x[j, 0:8]) }\n}\n"
    "for j in 0..n { q[j] = cast.i8.sat(x[j, 3] * 2.0) }\n"
    "for j in 0..n { set sum = sum + x[j, 1] * x[j, 2] }\n}\n"
    "require sum > 0.0 else \"no sum\"\ns[] = sum\n";

typedef struct Parse {
  const char *text;
  VmCode *code;
} Parse;

static void parse(Ctx *c, void *arg) {
  Parse *p = arg;
  p->code = vm_parse(c, p->text, strlen(p->text), str_of(c, "text"), &c->keep);
}

static void refuses(Ctx *c, const char *text) {
  Parse p = {text, NULL};
  CHECK(ctx_protect(c, parse, &p) == ERR_input);
}

static void both_ways(Ctx *c, void *arg) {
  Prog *p = prog_parse(c, program, sizeof program - 1, str_of(c, "p"), NULL, 0);
  (void)arg;
  prog_check_input(p);
  VmProgram *v = vm_compile(p, &c->keep);
  StrBuf t = sb_new(&c->keep), u = sb_new(&c->keep);
  vm_print(&v->code, &t);
  Parse q = {sb_cstr(&t), NULL};
  CHECK(ctx_protect(c, parse, &q) == ERR_ok);
  if (!q.code) return;
  CHECK(q.code->nword == v->code.nword && q.code->ninit == v->code.ninit);
  CHECK(!memcmp(q.code->word, v->code.word, v->code.nword * sizeof *v->code.word));
  for (u32 i = 0; i < v->code.ninit; i++)
    CHECK(q.code->init[i].slot == v->code.init[i].slot &&
          q.code->init[i].bits == v->code.init[i].bits);
  CHECK(q.code->slots == v->code.slots && q.code->row == v->code.row &&
        q.code->nbuf == v->code.nbuf);
  CHECK(q.code->nmessage == v->code.nmessage && q.code->math == v->code.math);
  vm_print(q.code, &u);
  CHECK(t.n == u.n && !memcmp(t.at, u.at, t.n));
  CHECK(strstr(sb_cstr(&t), "pick_w/16 ") && strstr(sb_cstr(&t), "dot_f/row "));
}

static const char head[] = "bytecode slots 8 row 4 buffers 1 messages 0 math exact\n";

int main(void) {
  Ctx *c = ctx_new(NULL, NULL);
  char text[400];
  CHECK(ctx_protect(c, both_ways, NULL) == ERR_ok);
  refuses(c, "bytecode slots 8");
  refuses(c, "bytecode slots -1");
  static const char *const bad[] = {"code 1: stop",
                                    "code 0: halt",
                                    "code 0: jmp 3",
                                    "code 0: add_f r1 r2",
                                    "code 0: vadd_f/2000 r1 r2 r3",
                                    "r1 = 0x12 code 0: stop",
                                    "code 0: fit r1 r2 f99",
                                    "code 0: gen1 r1 r2 none:f32:0:f32"};
  for (u32 i = 0; i < sizeof bad / sizeof *bad; i++) {
    snprintf(text, sizeof text, "%s%s\n", head, bad[i]);
    refuses(c, text);
  }
  snprintf(text, sizeof text, "%sr1 = 0x00000000000000ff\ncode\n0: jmp @0\n", head);
  Parse ok = {text, NULL};
  CHECK(ctx_protect(c, parse, &ok) == ERR_ok && ok.code->nword == 2);
  ctx_free(c);
  return check_end();
}

/* example.c: examples for a generated file: arrays for a run, the call, sizes.
 *
 * In: the program and facts of its file. Out: pieces of C and Markdown for the templates of
 * tools/export. */
#include "back/wrap/wrap.h"
#include "ir/lexer.h"

#include <inttypes.h>

void example_statics(const Prog *p, const EmitFacts *f, const char *upper, bool cpp, StrBuf *t) {
  sb_fmt(t, "%s(%s_ARENA_ALIGN) static unsigned char arena[%s_ARENA_BYTES];\n",
         cpp ? "alignas" : "_Alignas", upper, upper);
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    if (x->kind == PK_in)
      sb_fmt(t, "static %s in%u[%s_INPUT%u_ELEMENTS];\n", x->type, x->i, upper, x->i);
    if (x->kind == PK_out)
      sb_fmt(t, "static %s out%u[%s_OUTPUT%u_ELEMENTS];\n", x->type, x->i, upper, x->i);
    if (x->kind == PK_shape)
      sb_fmt(t, "static int64_t out%u_shape[%u];\n", x->i, param_buf(p, x)->rank + 1u);
  }
}

void example_call(const EmitFacts *f, const char *name, const char *upper, StrBuf *t) {
  sb_fmt(t, "%s_run(arena", name);
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    switch (x->kind) {
    case PK_weights: break; /* such files cannot be exported */
    case PK_size: sb_fmt(t, ", %s_SIZE%u_MAX", upper, x->i); break;
    case PK_seed: sb_puts(t, ", 0"); break;
    case PK_in: sb_fmt(t, ", in%u", x->i); break;
    case PK_out: sb_fmt(t, ", out%u", x->i); break;
    case PK_shape: sb_fmt(t, ", out%u_shape", x->i);
    }
  }
  sb_puts(t, ")");
}

void example_sizes(const EmitFacts *f, StrBuf *t) {
  const struct {
    const char *what;
    u64 bytes;
  } row[] = {{"weights, in flash", f->weight_bytes},
             {"code, in flash, about", f->code_bytes},
             {"arena, in RAM", f->arena_bytes},
             {"stack, at most", f->stack_bytes},
             {"inputs", f->input_bytes},
             {"outputs", f->output_bytes}};
  sb_puts(t, "| what | bytes |\n| --- | --- |\n");
  for (u32 i = 0; i < sizeof row / sizeof *row; i++)
    sb_fmt(t, "| %s | %" PRIu64 " |\n", row[i].what, row[i].bytes);
}

/* Removes characters of a name that Markdown or a comment would interpret. */
static void put_plain(StrBuf *t, const char *s) {
  for (; *s; s++)
    sb_put(t, *s < ' ' || *s > '~' || *s == '`' || *s == '|' || *s == '@' ? "?" : s, 1);
}

void example_ports(const Prog *p, StrBuf *t) {
  for (u32 i = 0; i < p->in.n + p->out.n; i++) {
    bool out = i >= p->in.n;
    u32 n = out ? i - p->in.n : i;
    const Buf *b = prog_buf(p, out ? p->out.at[n] : p->in.at[n]);
    StrBuf dims = sb_new(&p->c->scratch);
    for (u32 k = 0; k < b->rank; k++) {
      sb_puts(&dims, k ? "," : "");
      dim_print(p->dims, b->dim[k], &dims);
    }
    sb_fmt(t, "- %s%u: `", out ? "out" : "in", n);
    put_plain(t, str_text(p->c, b->name));
    sb_fmt(t, "` %s[", dtype_info[b->dt].name);
    put_plain(t, sb_cstr(&dims));
    sb_puts(t, "]\n");
  }
}

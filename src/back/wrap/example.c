/* example.c: what texts around a generated file say of it: arrays for a run, the call, sizes.
 *
 * In: the program and facts of its file. Out: pieces of C and of Markdown, for the templates of
 * tools/export.
 */
#include "back/wrap/wrap.h"
#include "ir/text.h"

#include <inttypes.h>

void example_statics(const Prog *p, const EmitFacts *f, const char *upper, bool cpp, Text *t) {
  text_fmt(t, "%s(%s_ARENA_ALIGN) static unsigned char arena[%s_ARENA_BYTES];\n",
           cpp ? "alignas" : "_Alignas", upper, upper);
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    if (x->kind == PK_in)
      text_fmt(t, "static %s in%u[%s_INPUT%u_ELEMENTS];\n", x->type, x->i, upper, x->i);
    if (x->kind == PK_out)
      text_fmt(t, "static %s out%u[%s_OUTPUT%u_ELEMENTS];\n", x->type, x->i, upper, x->i);
    if (x->kind == PK_shape)
      text_fmt(t, "static int64_t out%u_shape[%u];\n", x->i, param_buf(p, x)->rank + 1u);
  }
}

void example_call(const EmitFacts *f, const char *name, const char *upper, Text *t) {
  text_fmt(t, "%s_run(arena", name);
  for (u32 i = 0; i < f->params.n; i++) {
    const EmitParam *x = &f->params.at[i];
    switch (x->kind) {
    case PK_weights: break; /* such files are not exported */
    case PK_size: text_fmt(t, ", %s_SIZE%u_MAX", upper, x->i); break;
    case PK_seed: text_puts(t, ", 0"); break;
    case PK_in: text_fmt(t, ", in%u", x->i); break;
    case PK_out: text_fmt(t, ", out%u", x->i); break;
    case PK_shape: text_fmt(t, ", out%u_shape", x->i);
    }
  }
  text_puts(t, ")");
}

void example_sizes(const EmitFacts *f, Text *t) {
  const struct {
    const char *what;
    u64 bytes;
  } row[] = {{"weights, in flash", f->weight_bytes},
             {"code, in flash, about", f->code_bytes},
             {"arena, in RAM", f->arena_bytes},
             {"stack, at most", f->stack_bytes},
             {"inputs", f->input_bytes},
             {"outputs", f->output_bytes}};
  text_puts(t, "| what | bytes |\n| --- | --- |\n");
  for (u32 i = 0; i < sizeof row / sizeof *row; i++)
    text_fmt(t, "| %s | %" PRIu64 " |\n", row[i].what, row[i].bytes);
}

/* Names may hold anything; what Markdown or a comment would see in them is left out. */
static void put_plain(Text *t, const char *s) {
  for (; *s; s++)
    text_put(t, *s < ' ' || *s > '~' || *s == '`' || *s == '|' || *s == '@' ? "?" : s, 1);
}

void example_ports(const Prog *p, Text *t) {
  for (u32 i = 0; i < p->in.n + p->out.n; i++) {
    bool out = i >= p->in.n;
    u32 n = out ? i - p->in.n : i;
    const Buf *b = prog_buf(p, out ? p->out.at[n] : p->in.at[n]);
    Text dims = text_new(&p->c->scratch);
    for (u32 k = 0; k < b->rank; k++) {
      text_puts(&dims, k ? "," : "");
      dim_print(p->dims, b->dim[k], &dims);
    }
    text_fmt(t, "- %s%u: `", out ? "out" : "in", n);
    put_plain(t, str_text(p->c, b->name));
    text_fmt(t, "` %s[", dtype_info[b->dt].name);
    put_plain(t, text_cstr(&dims));
    text_puts(t, "]\n");
  }
}

/* repl.c: interactive programs.
 *
 * In: typed lines. Out: what they print, values of expressions after "=> ", errors. The text of all
 * successful lines is kept and checked again with every line; only the new line runs. Of failed
 * lines only the line ends are kept, so that line numbers match the input. Variables keep their
 * slots, because names are numbered in order. Commands: ":type E" shows the type of an expression,
 * ":graph E" the graph of a function or pending tensor, ":time E" the run time.
 */
#include "lang/run/lang_code.h"
#include "lang/run/lang_object.h"

#include <string.h>

struct IngotRepl {
  Ingot *m;
  IngotScript o;
  Eval ev;
  StrBuf text; /* all successful lines */
  u32 done;    /* number of statements in it */
  u32 files;   /* number of its files */
  /* the current line */
  const char *line;
  char command; /* t, g or m; 0: not a command */
  bool more;    /* incomplete */
  bool kept;    /* part of the text */
};

static void write_output(IngotRepl *r, const char *text, size_t n) {
  if (r->o.write) r->o.write(r->o.user, text, n);
}

static bool is_open(const Script *s) {
  i64 open = 0;
  for (u32 i = 0; i < s->token.n; i++) {
    Tok k = s->token.at[i].kind;
    open += k == TOK_lpar || k == TOK_lsq || k == TOK_lbrace;
    open -= k == TOK_rpar || k == TOK_rsq || k == TOK_rbrace;
  }
  return open > 0;
}

static void show_type(IngotRepl *r, const Ast *n, StrBuf *out) {
  sb_puts(out, n && n->type ? lang_type_text(r->ev.c, n->type) : "nothing");
  sb_puts(out, "\n");
}

/* Shows the value of the last statement, if it is an expression. */
static void show_value(IngotRepl *r, const Ast *n, LangValue *v, double start, StrBuf *out) {
  if (r->command == 'g' && v->kind == KD_tensor) {
    lazy_show_graph(&r->ev, v->u.lazy, out);
  } else if (r->command == 'm') {
    if (v->kind == KD_tensor) lazy_data(&r->ev, v->u.lazy);
    sb_fmt(out, "%.3f ms\n", time_ms() - start);
  } else if (r->command == 'g') {
    if (v->kind == KD_fn && trace_show(&r->ev, v->u.fn, out)) return;
    sb_fmt(out, "%s has no graph%s\n", value_kind_name(v),
           v->kind == KD_fn ? ", unless it takes only tensors of known shapes" : "");
  } else if (n->kind >= AST_name && v->kind != KD_null) {
    sb_puts(out, "=> ");
    value_show(&r->ev, v, out);
    sb_puts(out, "\n");
  }
}

static void run(IngotRepl *r, Script *s, StrBuf *out) {
  Eval *ev = &r->ev;
  const Ast *root = s->root;
  ev->s = s;
  for (u32 i = r->files ? r->files : 1; i < MODULES; i++) ev->file[i] = NULL; /* they failed */
  const RegCode *code = code_of_file(ev, s, r->done, true);
  ev->file[0] = file_variables(ev, code, ev->file[0]);
  double start = time_ms();
  LangValue v = run_file(ev, code);
  if (root->nkid > r->done) show_value(r, root->kid[root->nkid - 1], &v, start, out);
  value_drop(ev, &v);
}

/* Keeps the line, which starts at `from` in the text. A semicolon after its last token separates it
 * from the next line. */
static void keep(IngotRepl *r, const Script *s, u32 from) {
  u32 end = from;
  for (u32 i = 0; s->token.at[i].kind != TOK_end; i++) end = s->token.at[i].at + s->token.at[i].n;
  if (end < from) end = from;
  sb_put(&r->text, s->at + from, end - from);
  sb_puts(&r->text, ";");
  sb_put(&r->text, s->at + end, s->n - end);
  r->kept = true;
}

/* Keeps the line ends of a failed line. */
static void skip(IngotRepl *r) {
  for (const char *s = r->line; *s; s++)
    if (*s == '\n') sb_puts(&r->text, "\n");
  sb_puts(&r->text, "\n");
}

static void line(Ctx *c, void *arg) {
  IngotRepl *r = arg;
  StrBuf all = sb_new(&c->work), out = sb_new(&c->work);
  u32 from = (u32)r->text.n;
  sb_put(&all, r->text.at, r->text.n);
  sb_fmt(&all, "%s\n", r->line);
  Script *s = script_new(c, str_of(c, "line"), all.at, all.n, NULL);
  r->more = is_open(s) && !ends_with(r->line, "\n"); /* an empty line ends it */
  if (r->more) return;
  script_load(s);
  if (r->command == 't')
    show_type(r, s->root->nkid > r->done ? s->root->kid[s->root->nkid - 1] : NULL, &out);
  else
    run(r, s, &out);
  if (!r->command) {
    keep(r, s, from);
    r->done = s->root->nkid;
    r->files = s->all->n;
  }
  write_output(r, out.at, out.n);
}

static void report_errors(IngotRepl *r, Diag *from) {
  for (const Diag *d = from; d; d = d->next) {
    write_output(r, d->text, strlen(d->text));
    write_output(r, "\n", 1);
  }
}

int ingot_repl_line(IngotRepl *r, const char *text) {
  static const struct {
    const char *word;
    char command;
  } known[] = {{":type ", 't'}, {":graph ", 'g'}, {":time ", 'm'}};
  if (!r || !text) return 0;
  Ctx *c = r->m->c;
  DiagMark said = diag_mark(c);
  r->line = text;
  r->command = 0;
  r->more = r->kept = false;
  for (u32 i = 0; i < sizeof known / sizeof *known; i++)
    if (!strncmp(text, known[i].word, strlen(known[i].word))) {
      r->command = known[i].command;
      r->line = text + strlen(known[i].word);
    }
  if (*text == ':' && !r->command) {
    static const char help[] =
        "type, graph or time of an expression: :type E, :graph E, :time E; exit or Ctrl-D ends\n";
    write_output(r, help, sizeof help - 1);
    skip(r);
    return 0;
  }
  Err e = ctx_protect(c, line, r);
  if (e) report_errors(r, *said.end);
  if (!r->kept && !r->more) skip(r);
  diag_rewind(c, said);
  r->ev.depth = r->ev.in_grad = 0;
  r->ev.tracing = false;
  if (e) registers_clear(&r->ev);
  arena_clear(&r->ev.stack);
  arena_clear(&c->scratch);
  return r->more;
}

IngotRepl *ingot_repl_new(Ingot *m, const IngotScript *o) {
  if (!m || !o) return NULL;
  Alloc *a = &m->c->alloc;
  IngotRepl *r = a->resize(a->user, NULL, 0, sizeof *r);
  if (!r) return NULL;
  memset(r, 0, sizeof *r);
  r->m = m;
  r->o = *o;
  r->text = sb_new(&m->c->keep);
  r->ev = (Eval){.c = m->c, .o = &r->o, .serial = 1, .random = o->seed};
  r->ev.stack.c = m->c;
  r->ev.root = r->ev.frame = NEW(&m->c->keep, Frame);
  return r;
}

void ingot_repl_free(IngotRepl *r) {
  if (!r) return;
  Alloc a = r->m->c->alloc;
  heap_free_all(&r->ev);
  prog_cache_free(&r->ev);
  nets_free(&r->ev);
  arena_clear(&r->ev.stack);
  a.resize(a.user, r, sizeof *r, 0);
}

/* export_project.c: exports the model as a source folder for a build system.
 *
 * In: a model, the kind of project, a folder. Out: the C, an example program, build files and a
 * README with sizes. All but the C come from templates in tools/export, in which ${word} stands for
 * a fact of the model. They are embedded as one text, where a line "==== KIND/PATH" starts each
 * template. No file appears before all are made. MANIFEST lists the files written; other existing
 * files are never replaced.
 */
#include "api/api_internal.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

extern const unsigned char export_text[];
extern const size_t export_text_size;

/* Kinds of projects, their include folders, and shared templates. */
static const struct ExportKind {
  const char *name, *header;     /* header: include folder */
  const char *main, *main_place; /* template; NULL: none */
  bool hosted;                   /* supports threads and a weight file */
} kinds[] = {{"cmake", "include", "main.c.in", "example/main.c", true},
             {"make", "include", "main.c.in", "example/main.c", true},
             {"zephyr", "include", "main.c.in", "samples/hello/src/main.c", false},
             {"arduino", "src", NULL, NULL, false},
             {"platformio", "include", "main.c.in", "examples/hello/src/main.c", false},
             {"esp-idf", "include", "app_main.c.in", "examples/hello/main/main.c", false},
             {"rust", "include", NULL, NULL, false}};
enum { NKINDS = sizeof kinds / sizeof *kinds };

#define MANIFEST ".ingot-export"

typedef struct ExportKind ExportKind;

typedef struct Export {
  Ingot *m;
  const IngotExport *o;
  const ExportKind *kind;
  VEC(TemplateVar) word; /* ends with {0} */
  VEC(FileOut) file;
  StrBuf list; /* MANIFEST: files of earlier exports and of this one */
} Export;

static const ExportKind *find_kind(Ctx *c, const char *name) {
  return &kinds[row_named(c, "kind of project for --project", name, kinds, NKINDS, sizeof *kinds)];
}

/* ---- texts ---- */

static void add_file(Ctx *c, Export *x, const char *place, StrBuf t) {
  const char *path = fmt_text(c, "%s/%s", x->o->folder, place);
  *vec_push(&c->keep, &x->file) = (FileOut){.path = path, .at = t.at, .n = t.n};
}

/* Adds the templates of the kind and the shared ones, unexpanded. */
static void add_templates(Ctx *c, Export *x) {
  static const char line[] = "==== ";
  const ExportKind *k = x->kind;
  size_t prefix = strlen(k->name);
  const char *at = (const char *)export_text, *end = at + export_text_size;
  while (at < end) {
    const char *name = at + sizeof line - 1,
               *text = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    size_t n = (size_t)(text - 1 - name);
    for (at = text; at < end && strncmp(at, line, sizeof line - 1) != 0;)
      at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    const char *path = str_text(c, str_intern(c, name, n));
    StrBuf part = {.at = (char *)(uintptr_t)text, .n = (size_t)(at - text)};
    if (!strncmp(path, k->name, prefix) && path[prefix] == '/')
      add_file(c, x, path + prefix + 1, part);
    else if (k->main && !strcmp(path, k->main))
      add_file(c, x, k->main_place, part);
  }
}

static void define_var(Ctx *c, Export *x, const char *name, const char *text) {
  *vec_push(&c->keep, &x->word) = (TemplateVar){name, text};
}

static void define_number(Ctx *c, Export *x, const char *name, u64 n) {
  define_var(c, x, name, fmt_text(c, "%llu", (unsigned long long)n));
}

/* Name of the model on one line. */
static const char *source_line(Ctx *c, const Ingot *m) {
  const char *path = m->opened.source.file ? str_text(c, m->opened.source.file) : "a network";
  const char *slash = strrchr(path, '/');
  StrBuf t = sb_new(&c->keep);
  for (const char *s = slash ? slash + 1 : path; *s; s++)
    sb_put(&t, *s < ' ' || *s > '~' || strchr("@\"\\`", *s) ? "?" : s, 1);
  return sb_cstr(&t);
}

static const char *cstr(StrBuf t) {
  return sb_cstr(&t);
}

static void define_facts(Ctx *c, Export *x, const EmitFacts *f) {
  const char *name = x->o->c.name, *slash = strrchr(x->o->folder, '/');
  const Prog *p = x->m->p;
  StrBuf upper = sb_new(&c->keep), statics = sb_new(&c->keep), statics_cpp = sb_new(&c->keep),
         call = sb_new(&c->keep), sizes = sb_new(&c->keep), ports = sb_new(&c->keep);
  sb_upper(&upper, name);
  const char *caps = sb_cstr(&upper);
  example_statics(p, f, caps, false, &statics);
  example_statics(p, f, caps, true, &statics_cpp);
  example_call(f, name, caps, &call);
  example_sizes(f, &sizes);
  example_ports(p, &ports);
  bool state = prog_has_state(p), threads = p->threads > 1;
  define_var(c, x, "name", name);
  define_var(c, x, "NAME", caps);
  define_var(c, x, "folder", slash && slash[1] ? slash + 1 : x->o->folder);
  define_var(c, x, "source", source_line(c, x->m));
  define_var(c, x, "version", INGOT_VERSION);
  define_var(c, x, "library_version", "1.0.0");
  define_var(c, x, "statics", cstr(statics));
  define_var(c, x, "statics_cpp", cstr(statics_cpp));
  define_var(c, x, "call", cstr(call));
  define_var(c, x, "reset", state ? fmt_text(c, "  %s_reset(arena);\n", name) : "");
  define_var(c, x, "sizes", cstr(sizes));
  define_var(c, x, "ports", cstr(ports));
  define_var(c, x, "weights_cmake",
             x->m->written.blob.n
                 ? fmt_text(c,
                            "target_compile_definitions(%s PRIVATE "
                            "\"%s_WEIGHTS_FILE=\\\"${CMAKE_CURRENT_SOURCE_DIR}/src/%s.bin\\\"\")\n",
                            name, caps, name)
                 : "");
  define_var(c, x, "threads_cmake",
             threads ? fmt_text(c,
                                "find_package(Threads REQUIRED)\n"
                                "target_link_libraries(%s PUBLIC Threads::Threads)\n",
                                name)
                     : "");
  define_var(c, x, "threads_flag", threads ? " -pthread" : "");
  define_number(c, x, "flash", f->weight_bytes + f->code_bytes);
  define_number(c, x, "ram", ram_bytes(f));
  define_number(c, x, "stack_size", (2 * f->stack_bytes + 2048 + 1023) / 1024 * 1024);
  define_var(c, x, NULL, NULL);
}

/* ---- existing files ---- */

static _Noreturn void refuse(Ctx *c, const char *path) {
  fail(c, ERR_usage, LOC_NONE,
       "%s exists and was not written by ingot export: move it, or use another folder for --output",
       show_text(c, str_of(c, path)));
}

static void read_list(Ctx *c, Export *x) {
  const char *path = fmt_text(c, "%s/" MANIFEST, x->o->folder);
  struct stat st;
  x->list = sb_new(&c->keep);
  sb_puts(&x->list, "Files that ingot export wrote here, and may replace:\n");
  if (lstat(path, &st)) return;
  if (!S_ISREG(st.st_mode)) refuse(c, path);
  File f = file_read_own(c, path);
  const char *first = f.n ? memchr(f.at, '\n', f.n) : NULL;
  if (first) sb_put(&x->list, first + 1, f.n - (size_t)(first + 1 - (const char *)f.at));
}

/* Does the list contain the file on a line? */
static bool is_ours(Ctx *c, Export *x, const char *place) {
  const char *line = fmt_text(c, "\n%s\n", place);
  return strstr(sb_cstr(&x->list), line) != NULL;
}

/* Refuses to replace files that no export has written. */
static void check_overwrite(Ctx *c, Export *x) {
  struct stat st;
  size_t folder = strlen(x->o->folder) + 1;
  for (u32 i = 0; i < x->file.n; i++) {
    const char *path = x->file.at[i].path, *place = path + folder;
    if (is_ours(c, x, place)) continue;
    if (!lstat(path, &st)) refuse(c, path);
    sb_fmt(&x->list, "%s\n", place);
  }
}

/* ---- export ---- */

static void check_name(Ctx *c, const ExportKind *k, const char *name) {
  bool header = is_reserved_name(c, "project", name);
  if (header || is_reserved_name(c, k->name, name))
    fail(c, ERR_usage, LOC_NONE,
         "'%s' cannot be the name of a project for %s: %s has this name; use --name, for example "
         "%s_net",
         name, k->name, header ? "a C header" : "something else in it", name);
}

/* Paths that all kinds have: header, then source. */
static Export begin(Ctx *c, Ingot *m, const IngotExport *o) {
  Export x = {.m = m, .o = o, .kind = find_kind(c, o->kind)};
  const char *name = o->c.name;
  StrBuf none = sb_new(&c->keep);
  add_file(c, &x, fmt_text(c, "%s/%s.h", x.kind->header, name), none);
  add_file(c, &x, fmt_text(c, "src/%s.c", name), none);
  add_templates(c, &x);
  if (!strcmp(x.kind->name, "rust")) {
    add_file(c, &x, "src/lib.rs", none);
    add_file(c, &x, "examples/hello.rs", none);
  }
  read_list(c, &x);
  return x;
}

static void check(Ingot *m, const IngotExport *o) {
  Ctx *c = m->c;
  api_need(c, o, "the export options");
  api_need(c, o->kind, "the kind of the project");
  api_need(c, o->folder, "the folder");
  api_need(c, o->c.name, "the prefix of C names");
  const ExportKind *k = find_kind(c, o->kind);
  if (!*o->folder) fail(c, ERR_usage, LOC_NONE, "--output: expected the name of a folder");
  if (o->c.weights && (!strcmp(o->c.weights, "pointer") || !k->hosted) &&
      strcmp(o->c.weights, "inline"))
    fail(c, ERR_unsupported, LOC_NONE, "--weights %s: not supported in a project for %s",
         o->c.weights, k->name);
  check_name(c, k, o->c.name);
  Export x = begin(c, m, o);
  check_overwrite(c, &x);
}

/* Expands all files; those of Rust are the last two. */
static void make_files(Ctx *c, Export *x, const EmitFacts *facts, StrBuf header, StrBuf source) {
  u32 n = x->file.n, made = !strcmp(x->kind->name, "rust") ? 2 : 0;
  for (u32 i = 2; i < n - made; i++) {
    FileOut *f = &x->file.at[i];
    StrBuf t = sb_new(&c->keep);
    sb_subst(c, &t, (const char *)f->at, f->n, x->word.at);
    f->at = t.at, f->n = t.n;
  }
  x->file.at[0].at = header.at, x->file.at[0].n = header.n;
  x->file.at[1].at = source.at, x->file.at[1].n = source.n;
  if (!made) return;
  StrBuf library = sb_new(&c->keep), example = sb_new(&c->keep);
  emit_rust(x->m->p, x->o->c.name, facts, &library, &example);
  x->file.at[n - 2].at = library.at, x->file.at[n - 2].n = library.n;
  x->file.at[n - 1].at = example.at, x->file.at[n - 1].n = example.n;
}

static void export(Ingot *m, const IngotExport *o) {
  Ctx *c = m->c;
  check(m, o);
  Export x = begin(c, m, o);
  IngotCodegen ic = o->c;
  if (api_entry_count(m) > 1)
    fail(c, ERR_unsupported, LOC_NONE, "expected a single model for a project");
  if (!x.kind->hosted && m->codegen.threads > 1)
    fail(c, ERR_unsupported, LOC_NONE, "--threads: not supported in a project for %s",
         x.kind->name);
  api_compile_variants(m);
  if (!ic.weights && x.kind->hosted && api_wants_weights_file(m)) ic.weights = "file";
  StrBuf source = sb_new(&c->keep), header = sb_new(&c->keep);
  EmitFacts facts = api_emit(m, &ic, true, &source, &header);
  define_facts(c, &x, &facts);
  make_files(c, &x, &facts, header, source);
  if (m->written.blob.n) {
    const char *path = fmt_text(c, "%s/src/%s.bin", o->folder, ic.name);
    *vec_push(&c->keep, &x.file) =
        (FileOut){.path = path, .n = m->written.blob.piece.n, .piece = m->written.blob.piece.at};
  }
  check_overwrite(c, &x);
  add_file(c, &x, MANIFEST, x.list);
  files_write(c, x.file.at, x.file.n);
}

IngotStatus ingot_check_export(Ingot *m, const IngotExport *o) {
  API_CALL(m, check(m, o));
}

IngotStatus ingot_export(Ingot *m, const IngotExport *o) {
  API_CALL(m, export(m, o));
}

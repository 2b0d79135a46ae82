/* bytecode.c: models as bytecode files.
 *
 * In: a model, or an open bytecode file. Out: the file, or a program with its inputs and outputs
 * that only engine vm can run.
 */
#include "api/api_internal.h"

extern const unsigned char vm_source[], vm_header[];
extern const size_t vm_source_size, vm_header_size;

bool api_is_bytecode(const Ingot *m) {
  return m->opened.source.at && vm_sniff(m->opened.source.at, m->opened.source.n);
}

void api_need_model(const Ingot *m, const char *what) {
  if (api_is_bytecode(m))
    fail(m->c, ERR_unsupported, LOC_NONE,
         "%s: the file is bytecode, which only engine vm can run; expected the original model",
         what);
}

void api_read_bytecode(Ingot *m) {
  m->states.vm = vm_read(m->c, m->opened.source.at, m->opened.source.n, &m->c->keep);
  m->p = vm_prog(m->states.vm);
  m->states.vm_of = m->p;
}

static void write_bytecode(Ingot *m, const char *path) {
  Ctx *c = m->c;
  VmChunks piece = {0};
  api_need(c, path, "the path of the file");
  api_need_single_entry(m);
  api_need_single_variant(m);
  api_compile_variants(m);
  for (BufId b = 1; b < m->p->buf.n; b++)
    if (prog_buf(m->p, b)->space == BS_state && prog_buf(m->p, b)->data)
      fail(c, ERR_unsupported, LOC_NONE,
           "bytecode does not support state with initial data: compile the model to C");
  vm_write(api_vm(m), &c->keep, &piece);
  files_write(c, &(FileOut){.path = path, .piece = piece.at, .n = piece.n}, 1);
}

IngotStatus ingot_write_vm(Ingot *m, const char *path) {
  API_CALL(m, write_bytecode(m, path));
}

int ingot_is_vm(const Ingot *m) {
  return m && api_is_bytecode(m);
}

static void emit_vm(Ingot *m, const char **source, size_t *nsource, const char **header,
                    size_t *nheader) {
  api_need(m->c, source && nsource && header && nheader ? source : NULL,
           "pointers to source and header");
  StrBuf t = sb_new(&m->c->keep);
  sb_fmt(&t, "#define INGOT_VM_TABLES 0x%08xu /* of this version of ingot */\n", vm_tables());
  sb_put(&t, vm_source, vm_source_size);
  *source = sb_cstr(&t);
  *nsource = t.n;
  *header = (const char *)vm_header;
  *nheader = vm_header_size;
}

IngotStatus ingot_emit_vm(Ingot *m, const char **source, size_t *nsource, const char **header,
                          size_t *nheader) {
  API_CALL(m, emit_vm(m, source, nsource, header, nheader));
}

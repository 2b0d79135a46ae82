/* cuda.c: engine cuda: runs the program on an NVIDIA GPU.
 *
 * In: a model with inputs. Out: its outputs. The program is lowered for target cuda. Code, weights
 * and state stay on the device between runs.
 */
#include "api/api_internal.h"

void api_target_device(Ingot *m) {
  const Target *t = m->machine.target;
  if (t && !t->warp)
    fail(m->c, ERR_usage, LOC_NONE, "engine cuda: expected --march cuda, found %s", t->name);
  m->machine.target = target_warp();
}

void api_check_cuda_source(Ingot *m) {
  if (!m->opened.reader)
    fail(m->c, ERR_unsupported, LOC_NONE,
         "cuda: programs in text form are not supported: the kernels do not check their indices");
}

Cuda *api_cuda(Ingot *m) {
  api_check_cuda_source(m);
  if (m->states.cuda_of != m->p) api_close_cuda(m);
  if (m->states.cuda) return m->states.cuda;
  StrBuf self = sb_new(&m->c->keep);
  const char *keep = m->compiled.keep;
  if (keep) cache_key_add_self(m->c, &self);
  CudaOptions o = {.target = target_warp(),
                   .keep = keep,
                   .maker = sb_cstr(&self),
                   .label = cache_label(m),
                   .take = cache_check_file};
  m->states.cuda = cuda_make(m->p, &o);
  m->states.cuda_of = m->p;
  return m->states.cuda;
}

void api_make_cuda(Ingot *m) {
  api_cuda(m);
}

void api_run_cuda(Ingot *m, u64 seed) {
  cuda_run(api_cuda(m), seed, m->run.in, m->run.out, &m->run.once);
}

void api_close_cuda(Ingot *m) {
  cuda_end(m->states.cuda);
  m->states.cuda = NULL;
}

static void print_cuda(Ingot *m, bool json, StrBuf *out) {
  (void)json;
  api_need_model(m, "code for CUDA");
  api_target_device(m);
  api_run_passes(m, NULL);
  cuda_print(m->p, target_warp(), out);
}

IngotStatus ingot_print_cuda(Ingot *m, const char **text, size_t *n) {
  return api_call_text(m, print_cuda, false, text, n);
}

/* onnxruntime.c: engine onnxruntime: ONNX Runtime in a Python process, for comparison.
 *
 * In: a model from a file, with inputs. Out: its outputs. Arrays are exchanged as .npz in a
 * temporary folder. Without VNNI, int8 dot products of ONNX Runtime saturate at int16 unless
 * session.x64quantprecision is set; some models have no kernels for this setting and run without
 * it. Maps of ZipMap, which are dictionaries in arbitrary order, become values in the order of the
 * keys in the model, and these keys.
 */
#include "api/api_internal.h"

#include <string.h>

static const char script[] =
    "import sys\n"
    "try:\n"
    "  import numpy, onnxruntime\n"
    "except ImportError:\n"
    "  sys.exit(77)\n"
    "def start(exact):\n"
    "  o = onnxruntime.SessionOptions()\n"
    "  o.log_severity_level = 3\n"
    "  o.add_session_config_entry('session.x64quantprecision', exact)\n"
    "  return onnxruntime.InferenceSession(sys.argv[1], o, providers=['CPUExecutionProvider'])\n"
    "try:\n"
    "  s = start('1')\n"
    "except Exception:\n"
    "  s = start('0')\n"
    "z = numpy.load(sys.argv[2])\n"
    "r = s.run(None, {i.name: z[i.name] for i in s.get_inputs() if i.name in z})\n"
    "keys = numpy.load(sys.argv[4])\n"
    "flat = []\n"
    "for i, v in enumerate(r):\n"
    "  if 'k%d' % i in keys:\n"
    "    k = keys['k%d' % i]\n"
    "    words = [bytes(x).rstrip(bytes(1)).decode() for x in k] if k.ndim > 1 else k.tolist()\n"
    "    flat += [numpy.array([[m[w] for w in words] for m in v], numpy.float32), k]\n"
    "  else:\n"
    "    flat.append(v.astype(str) if getattr(v, 'dtype', 0) == object else v)\n"
    "numpy.savez(sys.argv[3], *flat)\n";

typedef struct Python {
  Ingot *m;
  TempDir folder;
} Python;

static void write_inputs(Ingot *m, const char *path, bool frozen) {
  Ctx *c = m->c;
  u32 n = api_param_count(m), more = frozen ? m->opened.frozen.n : 0;
  Str *name = NEWS(&c->keep, Str, n + more + 1);
  Tensor **data = NEWS(&c->keep, Tensor *, n + more + 1);
  StrBuf out = sb_new(&c->keep);
  for (u32 i = 0; i < n + more; i++) {
    name[i] = i < n ? api_param_name(m, i) : m->opened.frozen.at[i - n].name;
    data[i] = i < n ? m->run.raw[i] : (Tensor *)(uintptr_t)m->opened.frozen.at[i - n].data;
  }
  data_write_npz(c, &out, name, data, n + more);
  file_write(c, path, out.at, out.n);
}

void api_write_inputs(Ingot *m, const char *path) {
  write_inputs(m, path, false);
}

/* Keys of the maps in output i; NULL: not maps, or unknown. */
static const Tensor *keys_of(Ingot *m, u32 i) {
  const OutputStructure *p = &m->opened.ports[i];
  if (p->kind != TY_seq || !p->maps || !m->g) return NULL;
  return graph_const(m->g, m->g->region.at[1].ret.at[p->elem[1].flat]);
}

/* Writes a file with the keys of all maps; refuses outputs that are neither maps nor tensors. */
static void write_keys(Ingot *m, const char *path) {
  Ctx *c = m->c;
  u32 n = 0, all = m->opened.ports ? m->opened.model->noutput : 0;
  Str *name = NEWS(&c->keep, Str, all + 1);
  Tensor **data = NEWS(&c->keep, Tensor *, all + 1);
  StrBuf out = sb_new(&c->keep);
  for (u32 i = 0; i < all; i++) {
    if (m->opened.ports[i].kind == TY_tensor) continue;
    const Tensor *keys = keys_of(m, i);
    if (!keys)
      fail(c, ERR_unsupported, LOC_NONE,
           "engine onnxruntime: output '%s' is neither a tensor nor maps",
           show(c, m->opened.model->output[i].name));
    name[n] = str_fmt(c, "k%u", i);
    data[n++] = (Tensor *)(uintptr_t)keys;
  }
  data_write_npz(c, &out, name, data, n);
  file_write(c, path, out.at, out.n);
}

static void run(Ctx *c, void *arg) {
  Python *p = arg;
  Ingot *m = p->m;
  if (!m->opened.reader || !m->opened.reader->onnxruntime || !m->opened.source.path ||
      !strcmp(m->opened.source.path, "-"))
    fail(c, ERR_usage, LOC_NONE, "engine onnxruntime reads ONNX files only");
  tempdir_make(c, &p->folder);
  const char *in = tempdir_file(c, &p->folder, "in.npz"),
             *out = tempdir_file(c, &p->folder, "out.npz"),
             *keys = tempdir_file(c, &p->folder, "keys.npz");
  const char *python = m->python ? m->python : "python3";
  const char *argv[] = {python, "-c", script, m->opened.source.path, in, out, keys, NULL};
  write_inputs(m, in, true); /* the file still has them as inputs */
  write_keys(m, keys);
  int code = spawn_status(c, &p->folder, "Python", argv);
  if (code == 77)
    fail(c, ERR_system, LOC_NONE,
         "'%s' cannot import onnxruntime: install it, or name another Python with --python PATH",
         python);
  if (code) spawn_fail(c, &p->folder, "Python", python, code);
  File f = file_read_own(c, out);
  NamedTensors v = data_read_npz(c, f.at, f.n, LOC_NONE, &c->keep);
  if (v.n != m->run.nout)
    fail(c, ERR_system, LOC_NONE, "onnxruntime returned %u outputs, expected %u", v.n, m->run.nout);
  for (u32 i = 0; i < m->run.nout; i++) {
    Str name = str_fmt(c, "arr_%u", i);
    for (u32 k = 0; k < v.n; k++)
      if (v.at[k].name == name) m->run.out[i] = v.at[k].t;
    if (!m->run.out[i]) fail(c, ERR_system, LOC_NONE, "onnxruntime did not write output %u", i);
  }
}

void api_run_python(Ingot *m, u64 seed) {
  (void)seed; /* ONNX Runtime has its own seed; only generated inputs depend on ours */
  Python p = {.m = m};
  tempdir_protect(m->c, &p.folder, run, &p);
}

static void set_python(Ingot *m, const char *path) {
  Ctx *c = m->c;
  if (path) spawn_check(c, "Python", path);
  m->python = path ? str_text(c, str_of(c, path)) : NULL;
}

IngotStatus ingot_set_python(Ingot *m, const char *path) {
  API_CALL(m, set_python(m, path));
}

/* A distinct status, so that other programs are not taken for Python. */
static const char question[] = "import sys\n"
                               "try:\n"
                               "  import numpy, onnxruntime\n"
                               "except ImportError:\n"
                               "  sys.exit(77)\n"
                               "sys.exit(76)\n";

static void probe_python(Ctx *c, void *arg) {
  Python *p = arg;
  const char *python = p->m->python ? p->m->python : "python3";
  const char *argv[] = {python, "-c", question, NULL};
  tempdir_make(c, &p->folder);
  int code = spawn_status(c, &p->folder, "Python", argv);
  if (code == 77)
    fail(c, ERR_system, LOC_NONE,
         "'%s' cannot import onnxruntime: install it, or name another Python with --python PATH",
         python);
  if (code != 76)
    fail(c, ERR_system, LOC_NONE,
         "'%s' does not run Python code; expected --python PATH of a Python 3", python);
}

static void check_python(Ingot *m) {
  Python p = {.m = m};
  tempdir_protect(m->c, &p.folder, probe_python, &p);
}

IngotStatus ingot_check_python(Ingot *m) {
  API_CALL(m, check_python(m));
}

static void write_used(Ingot *m, const char *path) {
  if (!m->run.nin && api_param_count(m))
    fail(m->c, ERR_usage, LOC_NONE,
         "the model has not been run: expected ingot_run before this call");
  api_need(m->c, path, "the path of the inputs");
  api_write_inputs(m, path);
}

IngotStatus ingot_write_inputs(Ingot *m, const char *path) {
  API_CALL(m, write_used(m, path));
}

IngotTensor ingot_used_input(const Ingot *m, uint32_t i) {
  if (!m || i >= m->run.nin) return (IngotTensor){"", "", 0, NULL, NULL, 0};
  return api_tensor(m, api_param_name(m, i), m->run.in[i]);
}

/* back.h: engines and emitters that read Prog. They never see Graph. */
#ifndef INGOT_BACK_H
#define INGOT_BACK_H

#include "ir/prog/prog.h"
#include "ir/target.h"

/* State kept from run to run: the memory of every BS_state buffer. */
typedef struct InterpState {
  u8 **at; /* by buffer; NULL for other spaces */
} InterpState;

typedef struct InterpOptions {
  u64 seed;           /* seed of random expressions */
  bool watch;         /* refuse reads of arena bytes that another buffer stored */
  InterpState *state; /* read and updated by the run; NULL: start from the initial state */
  u64 max_steps;      /* limit of loop iterations; a longer run is refused; 0: no limit */
} InterpOptions;

/* interp.c: in has one tensor per p->in, of the declared dtype; their shapes bind the symbols. out
 * gets one tensor per p->out, with actual shapes, in arena a. o may be NULL. The program must have
 * passed prog_check. */
void interp_run(Prog *p, const InterpOptions *o, Tensor *const *in, Tensor **out, Arena *a);

InterpState *interp_state(Prog *p, Arena *a); /* state before the first run */

/* vm/: runs a program as bytecode, with a state from interp_state. A compiled program can run any
 * number of times; p must outlive it. */
typedef struct VmProgram VmProgram;
typedef struct VmOptions {
  u64 seed;
  u64 fuel; /* see Vm.fuel; a run that needs more is refused; 0: VM_FUEL for code from a file */
  InterpState *state;
  bool plain; /* use the portable machine, not the one for this CPU */
} VmOptions;
VmProgram *vm_compile(Prog *p, Arena *a);
void vm_dump(const VmProgram *v, StrBuf *t); /* print the code */
void vm_run(VmProgram *v, const VmOptions *o, Tensor *const *in, Tensor **out, Arena *a);
/* Allocates the memory of all runs in the arena of v. Otherwise the first run of a file does it. */
void vm_prepare(VmProgram *v);

/* vm/vm_file.c: bytecode files, see vm/igb.h. vm_write refuses a program without a plan; its pieces
 * point into v and the arena. vm_read copies everything but the weights, which stay in the given
 * bytes. vm_prog returns the program; from a file it has only inputs, outputs and memory. */
typedef VEC(Chunk) VmChunks;
void vm_write(const VmProgram *v, Arena *a, VmChunks *out);
bool vm_sniff(const u8 *at, size_t n);
u32 vm_tables(void); /* see igb_tables */
VmProgram *vm_read(Ctx *c, const u8 *at, size_t n, Arena *a);
Prog *vm_prog(const VmProgram *v);
typedef struct VmFacts {
  u32 version; /* version of the file format */
  u64 words, slots, arena,
      weights; /* words: code, 4 bytes each; slots: registers, 8 bytes each; others in bytes */
} VmFacts;
VmFacts vm_facts(const VmProgram *v);

/* Form of the weights of a generated file. */
typedef enum WeightMode {
  WM_auto,    /* WM_literal up to literal_bytes, WM_string above */
  WM_literal, /* numbers: correct on any machine */
  WM_string,  /* strings: fast to compile; little-endian */
  WM_file,    /* a file next to the C file, included with .incbin; little-endian */
  WM_pointer, /* the bytes of WM_file, passed to every call */
} WeightMode;

/* A run on generated inputs, and the hash of its outputs; see c/cselftest.c. */
typedef struct SelfTest {
  const i64 *size;   /* by symbol */
  Tensor *const *in; /* only the shapes are used */
  Tensor *const *out;
  const u32 *limit; /* by input: see selftest_fill */
  u64 hash;
  u64 loops_hash; /* hash of the loops that replace vectors; they round products */
} SelfTest;

/* A chunk of the C text that is generated only when the text is written. */
typedef struct DeferredText {
  size_t at;
  Chunk chunk;
} DeferredText;
typedef VEC(DeferredText) DeferredTexts;

/* Extra code for callers in the same file, such as calls of NAME_run, with a table of bytes stored
 * next to the weights, aligned to 8. The code tests IG_TABLE_FITS, then uses IG_TABLE; both may
 * name a parameter weight_file. */
typedef struct EmitExtra {
  const void *table; /* ntable 0: none */
  u64 ntable;
  const char *macros, *declarations, *code;
  u64 stack_around,
      stack_alone; /* bytes: of functions that call a run, and of functions that do not */
} EmitExtra;

typedef struct EmitOptions {
  const char *name;        /* prefix of all external names: an identifier */
  const char *version;     /* version of the generator */
  const char *source;      /* name of the model, for the comment */
  const char *options;     /* options that shaped the output, for the comment */
  u64 hash;                /* hash of the model */
  const char *march;       /* targets of all variants, separated by commas */
  const Target *target;    /* target of the vector code; other machines get plain loops */
  const char *no_selftest; /* reason for leaving out the self-test */
  bool openmp;             /* use OpenMP threads */
  bool check_cpu;          /* entries test the CPU also if the compiler's flags name its features */
  bool debug;   /* give every buffer its own static array, so that sanitizers catch out-of-bounds
                   accesses */
  bool caller;  /* add NAME_call, which has the same signature for every model */
  bool profile; /* call NAME_PROFILE after every kernel; see c/cprofile.c */
  bool ticks;   /* call NAME_tick(NAME_user, StmtId) after every kernel; for measurements only */
  u32 split;    /* number of parts that can be compiled separately; 0 or 1: not split */
  WeightMode weights;
  const char *weights_file; /* WM_file: its name in the text; NULL: NAME.bin */
  bool linked;              /* the header belongs to an object that contains its weights */
  const EmitExtra *more;    /* NULL: none */
  DeferredTexts *deferred;  /* NULL: write strings of weights into the text at once */
  u64 literal_bytes;        /* WM_auto: largest size of weights written as numbers */
} EmitOptions;

/* One kernel of the entry. */
typedef struct KernelFacts {
  const char *nodes;  /* labels of the graph nodes it computes */
  u32 id;             /* StmtId */
  double macs, bytes; /* multiply-adds per call as executed; bytes touched */
  double whole;       /* integer multiply-adds, included in macs */
} KernelFacts;

/* Parameters of NAME_run after the arena, in order. */
typedef enum ParamKind { PK_weights, PK_size, PK_seed, PK_in, PK_out, PK_shape } ParamKind;
typedef struct EmitParam {
  ParamKind kind;
  u32 i;            /* PK_size: symbol; otherwise input or output */
  const char *type; /* C type of the value or of what it points to */
  const char
      *name; /* unique identifier in C, C++ and Rust, made from the model's name; see cparam.c */
} EmitParam;
typedef VEC(EmitParam) EmitParams;

/* Facts about a generated file. */
typedef struct EmitFacts {
  u64 arena_bytes, selftest_bytes, stack_bytes, weight_bytes;
  u64 input_bytes, output_bytes; /* arrays of the caller */
  u64 code_bytes;                /* estimate, without weights */
  u32 kernels;                   /* distinct kernel functions */
  const KernelFacts
      *profile; /* with EmitOptions.profile: kernels of the variant that this machine runs */
  u32 nprofile; /* length of profile; max_profile is the maximum over all variants */
  u32 max_profile;
  EmitParams params; /* parameters of the first entry */
  const char
      *feature; /* CPU feature that would make it faster if the compiler may use it; "": none */
} EmitFacts;
u64 ram_bytes(const EmitFacts *f); /* memory of a run, without code and weights */
/* Weights stored outside the C text. The pieces are the constants of the program. */
typedef struct Blob {
  Arena *a;
  u64 n; /* bytes */
  VEC(Chunk) piece;
} Blob;
/* One entry of a file. */
typedef struct EmitEntry {
  const char *name; /* suffix after the name of the file; NULL: the only entry */
  const Prog *p;
  const SelfTest *selftest; /* NULL: none; either all entries have one or none has */
  double macs;
  const Scales *scale; /* scales of quantized inputs and outputs; NULL: unknown */
} EmitEntry;
/* The programs of a file for one target; several were joined by progs_join. */
typedef struct EmitVariant {
  const EmitEntry *entry;
  u32 n;
  const Target *target; /* differs between variants */
} EmitVariant;
/* c/cvariants.c: appends one C99 file and its header, with one variant per target in the order of
 * target_table. The first variant runs everywhere. At run time the file selects the last one that
 * the CPU supports. All variants have the same entries. The programs are planned and are not
 * changed. o->target is ignored. blob: for WM_file and WM_pointer. */
EmitFacts emit_variants(const EmitVariant *variant, u32 n, const EmitOptions *o, StrBuf *c_text,
                        StrBuf *h_text, Blob *blob);

/* wrap/params.c: is the name reserved? kind: a row of reserved.def */
bool is_reserved_name(Ctx *c, const char *kind, const char *name);

/* wrap/cpp.c: a C++ header around `header`, with a class that owns an arena. One entry only. */
typedef struct CppOptions {
  const char *name, *header, *version;
  bool given; /* weights are an argument */
  bool selftest, threads;
} CppOptions;
void emit_cpp(const Prog *p, const CppOptions *o, const EmitFacts *facts, StrBuf *to);

/* wrap/rust.c: src/lib.rs of a crate around a C file with one entry, and an example program. */
void emit_rust(const Prog *p, const char *name, const EmitFacts *f, StrBuf *library,
               StrBuf *example);

/* wrap/example.c: parts of examples for a C file with one entry: static arrays, the call of
 * NAME_run, and Markdown about memory, inputs and outputs. upper: name in capitals. */
void example_statics(const Prog *p, const EmitFacts *f, const char *upper, bool cpp, StrBuf *t);
void example_call(const EmitFacts *f, const char *name, const char *upper, StrBuf *t);
void example_sizes(const EmitFacts *f, StrBuf *t);
void example_ports(const Prog *p, StrBuf *t);

/* Estimates the bytes of code and weights that a compiler makes of the program for its target. */
u64 emit_size(const Prog *p, const EmitOptions *o);

/* The facts that emit_variants would return, without weights. o->weights must be WM_literal. */
EmitFacts emit_facts(const Prog *p, const EmitOptions *o);

/* c/crun.c: lines of text that identify the program in a library at run time. p: the variants in
 * order. march and model: see EmitOptions. arena: bytes. NAME_facts is the table of these lines,
 * ended by NULL. */
typedef VEC(Str) StrList;
StrList emit_fact_lines(const Prog *const *p, u32 n, const char *march, u64 model, u64 arena);
/* The table that tools/runner.c is compiled with. threads: to start; 1: none. limit: by input,
 * bound of generated integers. */
void emit_runner(const Prog *p, const char *name, const u32 *limit, EmitFacts facts, u32 threads,
                 StrBuf *t);
/* c/ccpu.c: emit_cpu_needs writes a constant with the CPU features that compiler flags allow, for a
 * file compiled with these flags. emit_cpu_check writes a file compiled without them that ends the
 * program on a CPU that lacks one. */
void emit_cpu_needs(StrBuf *t);
void emit_cpu_check(const char *program, StrBuf *t);
void emit_string(StrBuf *t, const char *text, size_t n); /* a C string literal of these bytes */

/* js/module.c: NAME.mjs and NAME.d.mts, which call NAME_call of a WebAssembly module. */
typedef struct ModuleOptions {
  const char *name;    /* prefix of the C names */
  const char *file;    /* file name of the module, next to the text */
  const char *version; /* version of the generator */
  EmitFacts facts;
} ModuleOptions;
void emit_module(const Prog *p, const ModuleOptions *o, StrBuf *module, StrBuf *types);

/* llvm/: compiles programs to machine code with libLLVM, if it is installed. */
typedef struct Llvm Llvm;
typedef struct JitCode JitCode;
typedef struct LlvmOptions {
  const Target *target; /* target whose vectors the program uses */
  bool object;          /* object for another process: call no function of this one */
  const char *keep;     /* folder of cached code; NULL: none */
  const char *maker;    /* identifies this version of ingot in cached code */
  const char *label;    /* end of the name of a cached file */
  bool (*take)(Ctx *c, const char *path); /* may this cached file be trusted? */
  /* objects only: */
  const char *machine; /* TRIPLE,CPU,FEATURES; NULL: this machine */
  const char *name;    /* prefix of external names */
} LlvmOptions;
/* Type of NAME_call in generated C, and of the entry of JIT code. */
typedef int CallFn(void *arena, const int64_t *size, uint64_t seed, const void *const *in,
                   void *const *out, int64_t *const *shape);
typedef struct Jit {
  CallFn *run; /* the pointer after the inputs is that of the weights */
  const void **weights;
  StrList why; /* see status_text */
  JitCode *code;
} Jit;
u32 llvm_version(void); /* 14 to 19; 0: not found */
/* Compiles for this machine; ERR_unsupported without LLVM. The code lives until jit_end or the end
 * of the context. */
Jit *jit_make(const Prog *p, const LlvmOptions *o);
void jit_end(Jit *j);
/* An object file that matches the C header, and its LLVM IR as text. */
void llvm_object(const Prog *p, const LlvmOptions *o, StrBuf *to);
void llvm_print(const Prog *p, const LlvmOptions *o, StrBuf *to);
const char *status_text(Ctx *c, const StrList *why, u32 status);

/* cuda/: runs programs lowered for target_warp() on an NVIDIA GPU. The driver and NVRTC are loaded
 * at run time; without them, or for a program that is not supported, it fails with ERR_unsupported.
 */
typedef struct CudaOptions {
  const Target *target;
  const char *keep;                       /* folder of cached cubins; NULL: none */
  const char *maker;                      /* identifies this version of ingot in cached code */
  const char *label;                      /* end of the name of a cached file */
  bool (*take)(Ctx *c, const char *path); /* may this cached file be trusted? */
} CudaOptions;
typedef struct Cuda Cuda;
void cuda_need(Ctx *c); /* fails without driver, GPU or NVRTC */
/* Compiles the kernels and copies weights and initial state to the device. p must outlive it. */
Cuda *cuda_make(const Prog *p, const CudaOptions *o);
/* Arguments as for interp_run; the state stays on the device. */
void cuda_run(Cuda *g, u64 seed, Tensor *const *in, Tensor **out, Arena *a);
/* Overwrites n bytes of a buffer with state. */
void cuda_set_state(Cuda *g, BufId b, u64 at, const void *from, u64 n);
/* Median time of the recorded run on the device, in ms; 0: no run was recorded. Changes the state.
 */
double cuda_replay_ms(Cuda *g);
/* From now on every kernel is timed alone, in ms; returns their number. */
typedef struct KernelTime {
  StmtId id;
  double ms;
  u64 calls;
} KernelTime;
u32 cuda_time_kernels(Cuda *g, KernelTime **times);
void cuda_end(Cuda *g); /* frees the memory of the device */
/* The kernels as text, which includes no header. */
void cuda_print(const Prog *p, const Target *t, StrBuf *to);
/* FILE.cu and FILE.h: the program with its launches, for nvcc. blob: constants and initial state,
 * which the caller copies to the device. */
typedef struct CudaFile {
  const char *name, *file; /* prefix of C names; name of the three files without suffix */
  const char *version, *source, *chips; /* chips: for -gencode, separated by commas */
  u64 hash;                             /* hash of the model */
} CudaFile;
void cuda_nvcc(const CudaFile *f, StrBuf *t); /* the command that compiles FILE.cu */
void cuda_emit(const Prog *p, const CudaFile *o, StrBuf *source, StrBuf *header, StrBuf *blob);
void cuda_report(Ctx *c, const char **gpu, const char **compiler); /* NULL: not found */

/* c/cselftest.c */
/* limit: bound of integers; 10: only the type bounds them. false: no formula for this type. */
bool selftest_fill(Tensor *t, u32 input, u32 limit);
/* flushes: see Target. */
u64 selftest_hash(Tensor *const *out, u32 n, bool flushes);

#endif

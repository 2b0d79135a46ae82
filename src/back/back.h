/* back.h: engines and emitters that read Prog. Never sees Graph. */
#ifndef INGOT_BACK_H
#define INGOT_BACK_H

#include "ir/prog.h"
#include "ir/target.h"

/* What a program keeps from run to run: memory of every BS_state buffer. */
typedef struct InterpState {
  u8 **at; /* by buffer; NULL for others */
} InterpState;

typedef struct InterpOptions {
  u64 seed;           /* of random expressions */
  bool watch;         /* nothing is read from the arena but what its own buffer stored there */
  InterpState *state; /* goes on from it and changes it; NULL: from the beginning, and forgotten */
  u64 max_steps;      /* iterations of loops; a run that needs more is refused; 0: no limit */
} InterpOptions;

/* interp.c: in: one tensor per p->in (dtype as declared; symbols are bound from their shapes);
 * out: one per p->out, with actual shapes, in arena a. o may be NULL. The program must have passed
 * prog_check. */
void interp_run(Prog *p, const InterpOptions *o, Tensor *const *in, Tensor **out, Arena *a);

InterpState *interp_state(Prog *p, Arena *a); /* as before the first run */

/* vm/: the same by bytecode; state: of interp_state. What vm_compile makes can be run any number of
 * times; p must live as long. */
typedef struct VmProgram VmProgram;
typedef struct VmOptions {
  u64 seed;
  u64 fuel; /* see Vm.fuel: a run that needs more is refused; 0: VM_FUEL for code of a file */
  InterpState *state;
  bool plain; /* the machine for any CPU, not the one for this */
} VmOptions;
VmProgram *vm_compile(Prog *p, Arena *a);
void vm_dump(const VmProgram *v, StrBuf *t); /* its code as text */
void vm_run(VmProgram *v, const VmOptions *o, Tensor *const *in, Tensor **out, Arena *a);
/* Memory for all runs, of the arena that v lives in: else the first run of a file asks for it. */
void vm_prepare(VmProgram *v);

/* vm/vm_file.c: a file of bytecode, see vm/igb.h; that of a program without a plan is refused. The
 * pieces belong to v and the arena. What is read copies all but the weights, which stay where they
 * are in the bytes. vm_prog: the program whose inputs, outputs and memory it has; one of a file has
 * nothing else. */
typedef VEC(Chunk) VmChunks;
void vm_write(const VmProgram *v, Arena *a, VmChunks *out);
bool vm_sniff(const u8 *at, size_t n);
u32 vm_tables(void); /* see igb_tables */
VmProgram *vm_read(Ctx *c, const u8 *at, size_t n, Arena *a);
Prog *vm_prog(const VmProgram *v);
typedef struct VmFacts {
  u32 version;                      /* of the format */
  u64 words, slots, arena, weights; /* of code, of 4 bytes; registers, of 8; bytes */
} VmFacts;
VmFacts vm_facts(const VmProgram *v);

/* Where the weights of a generated file are. */
typedef enum WeightMode {
  WM_auto,    /* literal up to literal_bytes, text above */
  WM_literal, /* numbers: right on any machine */
  WM_string,  /* strings: fast to compile; little-endian */
  WM_file,    /* a file beside the C file, assembled in by .incbin; little-endian */
  WM_pointer, /* the same bytes, given to every call */
} WeightMode;

/* A run on inputs made by a formula, and the hash of its outputs; see c/cselftest.c. */
typedef struct SelfTest {
  const i64 *size;   /* by symbol */
  Tensor *const *in; /* only their shapes matter */
  Tensor *const *out;
  const u32 *limit; /* by input: see selftest_fill */
  u64 hash;
  u64 loops_hash; /* of the loops that stand in for vectors: they round products */
} SelfTest;

/* What stands at a place of the C text, but is made when that is written. */
typedef struct DeferredText {
  size_t at;
  Chunk chunk;
} DeferredText;
typedef VEC(DeferredText) DeferredTexts;

/* What callers get beside the program in the same file: text that calls NAME_run and the like, and
 * bytes that lie where the weights do, at a multiple of 8. The code asks IG_TABLE_FITS, then takes
 * IG_TABLE; both may name a parameter weight_file. */
typedef struct EmitExtra {
  const void *table; /* ntable 0: there is none */
  u64 ntable;
  const char *macros, *declarations, *code;
  u64 stack_around, stack_alone; /* bytes: around a run, and of functions that run nothing */
} EmitExtra;

typedef struct EmitOptions {
  const char *name;        /* prefix of all external names: an identifier */
  const char *version;     /* of the generator */
  const char *source;      /* what the model was, for the comment */
  const char *options;     /* that shaped the output, for the comment */
  u64 hash;                /* of the model */
  const char *march;       /* names of the targets of all bodies, separated by commas */
  const Target *target;    /* whose vectors are written; every other machine gets plain loops */
  const char *no_selftest; /* why there is none */
  bool openmp;             /* threads are OpenMP's */
  bool debug;   /* every buffer a static array of its own, so that sanitizers see what leaves it */
  bool caller;  /* add NAME_call, a function of fixed type around the entry */
  bool profile; /* calls NAME_PROFILE behind every kernel; see c/cprofile.c */
  bool ticks;   /* calls NAME_tick(NAME_user, StmtId) behind every kernel: for measuring only */
  u32 split;    /* kernels can be compiled in so many parts; 0 or 1: all at once */
  WeightMode weights;
  const char *weights_file; /* WM_file: what the text calls it; NULL: NAME.bin */
  bool linked;              /* the header goes with an object, which has its weights inside */
  const EmitExtra *more;    /* NULL: nothing */
  DeferredTexts *deferred;  /* NULL: strings of weights are part of the text at once */
  u64 literal_bytes; /* WM_auto: weights up to this size are written as numbers, above as strings */
} EmitOptions;

/* A kernel of the entry. */
typedef struct KernelFacts {
  const char *nodes;  /* what it computes: labels of the graph */
  u32 id;             /* StmtId */
  double macs, bytes; /* multiply-adds of one call, as it does them; all of what it touches */
  double whole;       /* of these, those of integers */
} KernelFacts;

/* Parameters of NAME_run behind the arena, in their order. */
typedef enum ParamKind { PK_weights, PK_size, PK_seed, PK_in, PK_out, PK_shape } ParamKind;
typedef struct EmitParam {
  ParamKind kind;
  u32 i;            /* PK_size: the symbol; else the input or output */
  const char *type; /* of C, of what it is or points to */
  const char *name; /* a word of C, C++ and Rust made from the model's name; unique; see cparam.c */
} EmitParam;
typedef VEC(EmitParam) EmitParams;

/* Of a file. */
typedef struct EmitFacts {
  u64 arena_bytes, selftest_bytes, stack_bytes, weight_bytes;
  u64 input_bytes, output_bytes; /* arrays of the caller */
  u64 code_bytes;                /* roughly, without weights */
  u32 kernels;                   /* functions: kernels that differ */
  const KernelFacts *profile;    /* with EmitOptions.profile; of the body that this machine takes */
  u32 nprofile;                  /* of all bodies the most kernels are most_profile */
  u32 most_profile;
  EmitParams params;   /* of the first entry */
  const char *feature; /* that makes it faster where the compiler is told of it; "": none */
} EmitFacts;
u64 ram_bytes(const EmitFacts *f); /* all that a run needs but code and weights */
/* Weights that are no part of the C text; the pieces are the program's own constants. */
typedef struct Blob {
  Arena *a;
  u64 n; /* bytes */
  VEC(Chunk) piece;
} Blob;
/* A program of a file: one of its entries. */
typedef struct EmitEntry {
  const char *name; /* of the functions, behind that of the file; NULL: it is the only entry */
  const Prog *p;
  const SelfTest *selftest; /* NULL: none; all entries have one, or none has */
  double macs;
  const Scales *scale; /* of quantised inputs and outputs; NULL: none is known */
} EmitEntry;
/* The programs of a file for one machine; several were joined (progs_join). */
typedef struct EmitVariant {
  const EmitEntry *entry;
  u32 n;
  const Target *target; /* of two bodies no two are for the same */
} EmitVariant;
/* c/cvariants.c: one C99 file and its header, appended to the texts, with a body for each target,
 * in the order of target_table: the first is for every machine, of the others the file takes the
 * last that its CPU can run. All have the same entries. The programs are planned, and stay as they
 * are. target of the options is not looked at. blob: WM_file, WM_pointer. */
EmitFacts emit_variants(const EmitVariant *body, u32 n, const EmitOptions *o, StrBuf *c_text,
                        StrBuf *h_text, Blob *blob);

/* wrap/params.c: does the name belong to somebody else there? kind: of reserved.def */
bool is_reserved_name(Ctx *c, const char *kind, const char *name);

/* wrap/cpp.c: a header for C++ around that of the C, which it includes as `header`: a class that
 * owns an arena. The file has one entry. */
typedef struct CppOptions {
  const char *name, *header, *version;
  bool given; /* weights are an argument */
  bool selftest, threads;
} CppOptions;
void emit_cpp(const Prog *p, const CppOptions *o, const EmitFacts *facts, StrBuf *to);

/* wrap/rust.c: src/lib.rs of a crate around a C file of one entry, and a program that uses it. */
void emit_rust(const Prog *p, const char *name, const EmitFacts *f, StrBuf *library,
               StrBuf *example);

/* wrap/example.c: pieces of texts around a C file of one entry: arrays, the call of NAME_run with
 * them; what it needs, and inputs and outputs, as Markdown. upper: the name in capitals. */
void example_statics(const Prog *p, const EmitFacts *f, const char *upper, bool cpp, StrBuf *t);
void example_call(const EmitFacts *f, const char *name, const char *upper, StrBuf *t);
void example_sizes(const EmitFacts *f, StrBuf *t);
void example_ports(const Prog *p, StrBuf *t);

/* Roughly, bytes of code and weights that a compiler for its target makes of the program. */
u64 emit_size(const Prog *p, const EmitOptions *o);

/* What emit_variants would tell, without the weights: their form must be WM_literal. */
EmitFacts emit_facts(const Prog *p, const EmitOptions *o);

/* c/crun.c: by what a caller at run time knows that a library belongs to the program: lines of
 * text. p: the bodies of the file, in order. march and model: of EmitOptions. arena: its bytes.
 * NAME_facts is a table of them, ended by NULL. */
typedef VEC(Str) StrList;
StrList emit_fact_lines(const Prog *const *p, u32 n, const char *march, u64 model, u64 arena);
/* The table that tools/runner.c is compiled with. threads: that it starts; 1: none. limit: by
 * input, of made-up integers. */
void emit_runner(const Prog *p, const char *name, const u32 *limit, EmitFacts facts, u32 threads,
                 StrBuf *t);
/* c/ccpu.c: a constant with the CPU features that flags of the compiler allow, for a file compiled
 * with them; and a file compiled without them, which ends the program on a CPU that lacks one. */
void emit_cpu_needs(StrBuf *t);
void emit_cpu_check(const char *program, StrBuf *t);
void emit_string(StrBuf *t, const char *text, size_t n); /* a literal of C that holds these bytes */

/* js/module.c: what calls NAME_call of a module of WebAssembly: NAME.mjs and NAME.d.mts. */
typedef struct ModuleOptions {
  const char *name;    /* prefix of its C names */
  const char *file;    /* of the module, as it lies beside the text */
  const char *version; /* of the generator */
  EmitFacts facts;
} ModuleOptions;
void emit_module(const Prog *p, const ModuleOptions *o, StrBuf *module, StrBuf *types);

/* llvm/: programs as machine code, by LLVM's library, if there is one. */
typedef struct Llvm Llvm;
typedef struct JitCode JitCode;
typedef struct LlvmOptions {
  const Target *target;                   /* whose vectors the program has */
  bool object;                            /* for others: no function of this process is called */
  const char *keep;                       /* folder of code that was made before; NULL: none */
  const char *maker;                      /* of such code: this ingot and no other */
  bool (*take)(Ctx *c, const char *path); /* may code be taken from that file of `keep`? */
  /* of objects: */
  const char *machine; /* TRIPLE,CPU,FEATURES; NULL: this one */
  const char *name;    /* prefix of its names */
} LlvmOptions;
/* NAME_call of generated C, and what code of LLVM is called by. */
typedef int CallFn(void *arena, const int64_t *size, uint64_t seed, const void *const *in,
                   void *const *out, int64_t *const *shape);
typedef struct Jit {
  CallFn *run; /* behind the inputs: a pointer to weights */
  const void **weights;
  StrList why; /* see status_text */
  JitCode *code;
} Jit;
u32 llvm_version(void); /* 14 to 19; 0: there is none */
/* For this machine; ERR_unsupported where there is no LLVM. It lasts as long as the context, or to
 * jit_end. */
Jit *jit_make(const Prog *p, const LlvmOptions *o);
void jit_end(Jit *j);
/* An object file, and its code as LLVM writes it: what the header of the C declares. */
void llvm_object(const Prog *p, const LlvmOptions *o, StrBuf *to);
void llvm_print(const Prog *p, const LlvmOptions *o, StrBuf *to);
const char *status_text(Ctx *c, const StrList *why, u32 status);

/* c/cselftest.c */
/* limit: of integers; 10: none but what the type says. false: no formula for its type. */
bool selftest_fill(Tensor *t, u32 input, u32 limit);
u64 selftest_hash(Tensor *const *out, u32 n);

#endif

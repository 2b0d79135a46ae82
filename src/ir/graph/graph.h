/* graph.h: the Graph, SSA over whole tensors.
 *
 * A graph owns values, nodes and regions in three arrays. Everything refers to them by 32-bit id;
 * id 0 means "none".
 * A region is an ordered list of nodes with parameters and results. Region 1 is the graph itself;
 * others are bodies of `if` and `loop` and may use values of enclosing regions.
 * Values are immutable. A constant is a node like any other (OP_const). */
#ifndef INGOT_GRAPH_H
#define INGOT_GRAPH_H

#include "ir/ir.h"

typedef struct Graph Graph;
typedef u32 Val;      /* index into g->val */
typedef u32 NodeId;   /* index into g->node */
typedef u32 RegionId; /* index into g->blk */
typedef struct Value Value;
typedef struct Node Node;
typedef struct GraphRegion GraphRegion;
typedef struct Attr Attr;
typedef struct FixedParam FixedParam;
typedef struct StatePair StatePair;
typedef struct RunningStat RunningStat;
typedef struct Layout Layout;

typedef enum AttrKey {
  AT_none,
#define AT(name) AT_##name,
#include "ir/attrs.def"
#undef AT
  AT_COUNT
} AttrKey;
extern const char *const attr_name[AT_COUNT];

typedef enum AttrKind { AK_int, AK_float, AK_list, AK_str, AK_dtype, AK_const } AttrKind;

struct Attr {
  AttrKey key;
  AttrKind kind;
  u32 n; /* AK_list: entries */
  union {
    i64 i; /* AK_int, AK_dtype */
    double f;
    const Dim *list; /* integers, or dimensions if ops.def says so */
    Str s;
    Tensor *t;
  } u;
};

/* The storage of a value; set by the pass fuse. */
typedef enum ValuePlacement {
  HOME_buffer,   /* in memory */
  HOME_inline,   /* recomputed where it is used */
  HOME_epilogue, /* in the accumulator of its node, completed by its user */
  HOME_COUNT
} ValuePlacement;
extern const char *const home_name[HOME_COUNT];

/* Box coordinates, see OP_nms. */
typedef enum BoxKind { BX_edges, BX_corners, BX_centre, BX_COUNT } BoxKind;
extern const char *const box_kind_name[BX_COUNT];

/* Memory layout of a value with rank >= 3 that is not plain row-major. */
struct Layout {
  u32 block; /* channel block: channels (dimension 1) stored innermost; 0: plain order */
  i64 lo[MAX_RANK], hi[MAX_RANK]; /* border around dimensions 2 and up */
  i64 fill; /* contents of the border: 0, or for bytes the zero point of their readers */
};

enum { LAYOUT_BLOCK = 32, LAYOUT_BORDER = 1 << 20 };
enum { LAYOUT_PART = 4 }; /* smallest part of a channel block that is processed as a vector */
bool type_can_have_layout(const Type *t);
/* Does the node access operands and result element by element? Other nodes need plain layouts. */
bool node_takes_layout(const Node *n);
bool node_is_view(const Node *n); /* reads its operand through another index, without a copy */
/* Converts i8, u8 or i16 to i32, subtracts a constant from the result, or converts f16 or bf16 of a
 * layer to f32. It is nearly free, so the narrow values stay in memory. */
bool node_is_decode(Graph *g, const Node *n);
bool node_is_widening(Graph *g, const Node *n); /* casts a narrow integer to more bytes */
/* Matches v = q - *zero built by node_is_decode nodes; *zero fits the type of q. Returns q, 0: no
 * match. */
Val graph_narrow(Graph *g, Val v, i64 *zero);
Val graph_bytes(Graph *g, Val v, i64 *zero); /* graph_narrow, only for i8 and u8 */
Val graph_widen_as(Graph *g, Val v, Val q);  /* rebuilds v from q: as i32, less zero */
/* Matches v = q - *zero in a wider type, with bytes q. *zero: bytes of the same type or constants
 * in their range; 0: v = q. So v is in -255..255. Returns q, 0: no match. */
Val graph_bytes_and_zero(Graph *g, Val v, Val *zero);
/* The window of a convolution or pool, over the last n dimensions of in[0]. */
typedef struct NodeWindow {
  u32 n;
  Dim size[MAX_RANK], input_dilation[MAX_RANK];
  const Dim *stride, *dilation, *lo, *hi; /* lo, hi: padding */
} NodeWindow;
NodeWindow node_window(Graph *g, const Node *n);
/* May operand k of a concat, if it has no other user, be computed directly into the result? True
 * for maps, contractions and pools. A reduction vectorized over channel blocks is not scattered
 * into a plain result, where it would be scalar. Copying it costs only as much as one reduction
 * step. */
bool concat_part_fits(Graph *g, const Node *concat, u32 k);

struct Value {
  Type type;
  Str name;   /* name from the model; need not be unique */
  NodeId def; /* 0: region parameter */
  u32 pos;    /* index among the outputs of def, or among the parameters */
  ValuePlacement home;
  const Layout *layout; /* NULL: plain */
  bool weight;          /* a constant that training changes, or its state: see Graph.opens */
};

struct Node {
  Op op;
  u32 nin, nout, nattr, nregion;
  Val *in; /* 0: absent */
  Val *out;
  Attr *attr; /* sorted by key */
  RegionId region[2];
  Sym *sym; /* symbols of kind SY_data that this node sets, in the order of its op */
  u32 nsym;
  Loc loc; /* the ONNX node it comes from */
};

struct GraphRegion {
  VEC(Val) param;
  VEC(NodeId) node;
  VEC(Val) ret;
  NodeId owner; /* 0 for region 1 */
};

/* The graph is specialized for these contents of a parameter (a shape given at run time); callers
 * must pass them. */
struct FixedParam {
  Val param;
  Tensor *data;
};

/* A result that becomes a parameter of the next run; hidden from callers. Initially it holds
 * `start` or zeros, and its growing dimension is 0. */
struct StatePair {
  u32 in, out;   /* positions in the parameters and results of region 1 */
  i64 most;      /* maximum extent it may grow to; 0: the bounds of its symbols */
  i64 window;    /* results depend only on the last `window` positions; 0: on all */
  Tensor *start; /* has the type of the parameter, which must be static; NULL: zeros */
};

/* A constant that each training step updates: a running mean or variance. */
struct RunningStat {
  Val of, next;
};

struct Graph {
  Ctx *c;
  Dims *dims;
  Str name;
  VEC(Value) val;
  VEC(Node) node;
  VEC(GraphRegion) region;
  VEC(FixedParam) pin;
  VEC(StatePair) state;
  VEC(RunningStat) drift;
  VEC(Str) out_name; /* names of the results of region 1; parameters hold their own names */
  Scales scale;      /* scales of quantized inputs and outputs; for callers only, not used in the
                        computation */
  RegionId cur;      /* nodes are appended here */
  Loc loc;           /* location of new nodes */
  bool eager;        /* fold small integer computations while building (import only) */
  bool opens;        /* import: weights are marked and not folded; see train.h */
  bool trains;       /* import: layers behave as in training */
  bool rounds;       /* the model lets products round their operands to int8 */
  bool ordered;      /* nodes are already in execution order */
  bool again;        /* canon or quant changed something; run again */
  u8 left;           /* LEFT_*: work for later passes, which the pipeline runs next */
  u64 fold_bytes;    /* bytes used by constant folding, for its budget */
};

/* graph.c */
Graph *graph_new(Ctx *c);
Graph *graph_copy(const Graph *from); /* deep copy, except for the contents of tensors */
static inline Value *graph_val(Graph *g, Val v) {
  return &g->val.at[v];
}
static inline Node *graph_node(Graph *g, NodeId n) {
  return &g->node.at[n];
}
/* The node that defines v; NULL for a parameter. Adding nodes invalidates the pointer. */
static inline const Node *graph_producer(Graph *g, Val v) {
  NodeId def = graph_val(g, v)->def;
  return def ? graph_node(g, def) : NULL;
}
/* The node that defines v if it is an op, else NULL. */
static inline const Node *graph_def(Graph *g, Val v, Op op) {
  const Node *n = graph_producer(g, v);
  return n && n->op == op ? n : NULL;
}
static inline Type *graph_type(Graph *g, Val v) {
  return &g->val.at[v].type;
}
static inline Dims *graph_dims(Graph *g) {
  return g->dims;
}
RegionId graph_region(Graph *g, NodeId owner);           /* new empty region */
Val graph_param(Graph *g, RegionId b, Type t, Str name); /* appends a parameter */
void graph_result(Graph *g, Val v, Str name);            /* appends a result of region 1 */
/* Appends a node to g->cur and returns it. Attributes are copied. infer_node sets output types.
 * Invalid operands or attributes fail with ERR_input at g->loc. With g->eager, may append a
 * constant (or dims) node with the same first output instead. */
NodeId graph_add(Graph *g, Op op, const Val *in, u32 nin, const Attr *attr, u32 nattr);
/* Control nodes: build the regions (graph_region(g, 0)), then add the node with its types. */
NodeId graph_add_control(Graph *g, Op op, const Val *in, u32 nin, const Attr *attr, u32 nattr,
                         const RegionId *region, u32 nregion);
/* Adds n scan outputs to a loop: the values v of its body, stacked over iterations in out. */
void graph_add_scans(Graph *g, NodeId loop, const Val *v, u32 n, Val *out);
/* Limit of the product of AT_input_dilation: each phase of the result is lowered separately. */
enum { MOST_INPUT_DILATION = 64 };
const Attr *node_attr(const Node *n, AttrKey key); /* NULL when absent */
i64 node_int(const Node *n, AttrKey key, i64 otherwise);
BoxKind node_box_kind(const Ctx *c, const Node *n);           /* BX_COUNT: unknown */
const Dim *node_list(const Node *n, AttrKey key, u32 *count); /* NULL when absent */
enum { CAST_SMALL = 2 }; /* OP_cast, attribute sat: saturates, operand known to be small */
bool node_cast_sat(const Node *n); /* OP_cast: does it saturate? */
/* Is it evaluated at compile time once its operands are constant? Excludes control nodes, random
 * numbers, index checks (these fail at run time) and nodes with symbolic attributes. */
bool node_folds(const Node *n);
const Tensor *graph_const(Graph *g, Val v); /* the tensor, if v is defined by OP_const; else NULL */
bool graph_is_true(Graph *g, Val v);        /* a constant whose first element is true */
/* Contents of an integer tensor of at most max elements, if known (const or dims nodes); false if
 * not. */
bool graph_ints(Graph *g, Val v, i64 *out, u32 max, u32 *n); /* all constants, may be negative */
/* Equal keys mean equal computations, except for constants: the key has a hash of up to KEY_CONTENT
 * bytes of content, or the address of more. */
enum { KEY_CONTENT = 65536 };
StrBuf node_key(Arena *a, const Node *n);
/* Maps each value to the first value with an equal computation; in scratch. */
Val *graph_same(Graph *g);
/* non-negative constants or symbolic */
bool graph_dim_list(Graph *g, Val v, Dim *out, u32 max, u32 *n);
/* contents the parameter is pinned to, or NULL */
const Tensor *graph_pin(const Graph *g, Val param);
void graph_use_counts(Graph *g, u32 *count); /* count[val]: uses by nodes and region results */

/* graph_state.c */
/* The one axis along which a state grows: its extent is sym in this run and `next` in the next. */
typedef struct GrowingAxis {
  u32 axis; /* MAX_RANK: none */
  Sym sym;
  Dim next;
  i64 most; /* see StatePair */
} GrowingAxis;
/* May `out` become the parameter `in` of the next run? If not, *why is the reason. */
bool state_fits(Graph *g, Val in, Val out, GrowingAxis *how, const char **why);
/* The growth of a pair accepted by state_fits. */
GrowingAxis state_growth(Graph *g, const StatePair *s);
void graph_check_state(Graph *g, Err code); /* checks each pair and all together; fails with code */

/* infer.c, infer_control.c: checks a node; output types from operand types and attributes. */
/* Writes n->nout types to out; fails with ERR_input at n->loc. Creates data symbols if n->sym is
 * NULL, else keeps them. Types of control nodes come from their regions. */
void infer_node(Graph *g, Node *n, Type *out);
/* Does the loop always run its full trip count? loop_trip_count: that number, -1 if unknown. */
bool loop_is_counted(Graph *g, const Node *n);
i64 loop_trip_count(Graph *g, const Node *n);
/* numpy broadcasting of n shapes; fails if they are incompatible. */
u32 infer_broadcast(Graph *g, const Type *const *t, u32 n, Dim *out);

/* build.c: short constructors. Each appends to g->cur and returns the (first) result, or the
 * operand itself if there is nothing to do (same shape, same dtype, ...). */
Val mk_node(Graph *g, Op op, const Val *in, u32 nin, const Attr *attr, u32 nattr);
Val mk_map1(Graph *g, Op op, Val a);
Val mk_map2(Graph *g, Op op, Val a, Val b);
Val mk_select(Graph *g, Val cond, Val a, Val b);
Val mk_cast(Graph *g, Val a, DType to);     /* ONNX Cast rules with saturation for narrow floats */
Val mk_cast_sat(Graph *g, Val a, DType to); /* integers saturate too */
Val mk_cast_small(Graph *g, Val a, DType to); /* mk_cast_sat of an operand known to be small */
/* Mark casts that end a layer, see `layer` in ops.def: cast_mark the cast v, layer_end those after
 * node `first`. */
void cast_mark(Graph *g, Val v);
void layer_end(Graph *g, NodeId first); /* final casts of what was built at g->loc */
Val mk_const(Graph *g, Tensor *t);
Val mk_scalar(Graph *g, DType dt, double x); /* rank 0 */
Val mk_requant(Graph *g, Val a, Val b, Val c);
Val mk_like(Graph *g, Val like, double x);  /* rank 0 scalar of the dtype of like */
Val mk_ints(Graph *g, const i64 *x, u32 n); /* i64[n] */
Val mk_dims(Graph *g, const Dim *d, u32 n); /* i64[n]; const when all are constant */
Val mk_dims_as(Graph *g, DType dt, u32 rank, const Dim *d, u32 n); /* i64 or i32, rank 0 or 1 */
Val mk_iota(Graph *g, DType dt, const Dim *shape, u32 rank, u32 axis);
Val mk_reduce(Graph *g, Op op, Val x, const i64 *axes, u32 naxes, bool keep);
Val mk_arg(Graph *g, Op op, Val x, i64 axis, bool keep, bool last);
Val mk_contract(Graph *g, Val a, Val b, const char *spec);
Val mk_matmul(Graph *g, Val a, Val b); /* numpy matmul, any ranks >= 1, batch broadcast */
Val mk_conv(Graph *g, Val x, Val w, i64 group, const i64 *stride, const i64 *dilation,
            const i64 *pad_lo, const i64 *pad_hi);
/* Weights [C, M/group, k...] of a transposed convolution as [M, C/group, k... mirrored] of a
 * convolution. */
Val mk_mirror(Graph *g, Val weights, i64 group);
Val mk_pool(Graph *g, Op op, Val x, u32 nspatial, const i64 *window, const i64 *stride,
            const i64 *dilation, const i64 *pad_lo, const i64 *pad_hi);
Val mk_reshape(Graph *g, Val x, const Dim *shape, u32 rank);
Val mk_unsqueeze(Graph *g, Val x, u32 axis); /* one axis of extent 1 inserted before axis */
Val mk_squeeze(Graph *g, Val x, u32 axis);   /* removes that axis */
Val mk_transpose(Graph *g, Val x, const i64 *perm);
Val mk_slice(Graph *g, Val x, const Dim *start, const Dim *size,
             const i64 *step); /* step NULL: 1 */
Val mk_slice_axis(Graph *g, Val x, u32 axis, Dim start, Dim size);
Val mk_broadcast(Graph *g, Val x, const Dim *shape, u32 rank);
Val mk_concat(Graph *g, const Val *x, u32 n, i64 axis);
Val mk_pad(Graph *g, Val x, Val value, const Dim *lo, const Dim *hi, const i64 *interior);
Val mk_gather(Graph *g, Val x, Val idx, i64 axis);
Val mk_gather_elems(Graph *g, Val x, Val idx, i64 axis);
Val mk_gather_nd(Graph *g, Val x, Val idx, i64 batch);
Val mk_scatter_elems(Graph *g, Val x, Val idx, Val upd, i64 axis, const char *reduce);
Val mk_scatter_nd(Graph *g, Val x, Val idx, Val upd, const char *reduce);
/* idx itself if it is provably in range */
Val mk_check_index(Graph *g, Val idx, const Dim *size, u32 n);
/* i64 zeros; if `wrong` holds, the run fails with `text` */
Val mk_assert(Graph *g, Val wrong, const char *text);
Val mk_cum(Graph *g, Op op, Val x, i64 axis, bool exclusive, bool reverse);
Val mk_nonzero(Graph *g, Val x);
/* blocks: u8[.., n, bytes]; kind: row of qblocks.def; x_bits: see ops.def. */
Val mk_dequantize(Graph *g, Val blocks, const char *kind, u32 x_bits);
Val mk_matmul_quant(Graph *g, const Val *in, u32 nin, const char *kind);
Val mk_bytes(Graph *g, Val strings, i64 k);
Val mk_text(Graph *g, Val rows);
Val mk_random(Graph *g, DType dt, const Dim *shape, u32 rank, i64 seed);
/* scores, boxes, limit, IoU and score thresholds */
Val mk_nms(Graph *g, const Val *in, BoxKind kind, Dim k);
void mk_topk(Graph *g, Val x, i64 axis, Dim k, bool largest, Val *values, Val *indices);
/* A loop of `trip` iterations. body is called once to build it, with the counter (i64 scalar) and
 * the carried values. It replaces carried[] by their next values and fills scan[]. On return
 * carried[] and scan[] hold the results. cond: 0 for none, else a bool scalar; body then also
 * writes *cond. */
typedef void BodyFn(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan);
void mk_loop(Graph *g, Val trip, Val cond, Val *carried, u32 ncarried, Val *scan, u32 nscan,
             BodyFn *body, void *user);

/* Constructors of all scalar ops with one or two operands: mk_exp(g, x), mk_max(g, x, y)... */
#define MK1(name)                                                                                  \
  static inline Val mk_##name(Graph *g, Val x) {                                                   \
    return mk_map1(g, OP_##name, x);                                                               \
  }
#define MK2(name)                                                                                  \
  static inline Val mk_##name(Graph *g, Val x, Val y) {                                            \
    return mk_map2(g, OP_##name, x, y);                                                            \
  }
#define MK3(name)
#define MK_same(name, nin) MK##nin(name)
#define MK_pred(name, nin) MK##nin(name)
#define MK_sel(name, nin)
#define MK_to(name, nin)
#define SC(name, nin, cls, res, flags, text) MK_##res(name, nin)
#define OP(name, lo, hi, nout, kind, flags, attrs, text)
#include "ir/ops.def"
#undef SC
#undef OP

/* int_range.c: is every index in -size..size-1 in every run? n: 1, or one size per position of the
 * last axis. */
bool index_fits(Graph *g, Val idx, const Dim *size, u32 n);
/* Is every index in 0..extent-1 in every run? */
bool index_is_certain(Graph *g, Val idx, Dim extent);
/* Bounds of all elements of an integer value, over all runs. */
void value_int_range(Graph *g, Val v, i64 *lo, i64 *hi);
/* Bounds of all elements over the runs in which no index check fails. same: from graph_same. */
void value_int_range_checked(Graph *g, Val v, const Val *same, i64 *lo, i64 *hi);
/* left: node budget, as below */
void value_int_range_in(Graph *g, Val v, i64 *lo, i64 *hi, u32 *left);
/* float_range.c: bounds of all elements of a float value, NaN excluded. left: budget of nodes to
 * analyze. */
typedef struct FloatRange {
  double lo, hi;
  bool nan; /* elements may be NaN */
} FloatRange;
FloatRange value_float_range(Graph *g, Val v, u32 *left); /* does not compute nan */
/* also computes nan, which analyzes more nodes */
FloatRange value_float_range_full(Graph *g, Val v, u32 *left);
/* bounds after rounding numbers in r to dt */
FloatRange bounds_outward(DType dt, FloatRange r);
/* below[v]: indices in v must be below it wherever v is used as an index; 0: not used as one. */
void index_limits(Graph *g, i64 *below);
const char *index_error(Graph *g, const Node *n); /* run-time message of an OP_check_index node */

/* edit.c: the traversal that every graph pass uses. visit sees the nodes of each region in order (a
 * control node before its regions), with operands already replaced. New nodes are inserted before
 * the visited node. visit returns false to drop the node, after replacing its outputs. If it
 * changes a node in place, it sets `changed`. */
typedef struct GraphEdit {
  Graph *g;
  Val *with; /* with[v]: replacement of v, or v */
  void *user;
  bool changed;
} GraphEdit;
typedef bool EditFn(GraphEdit *e, NodeId n);
bool edit_run(Graph *g, EditFn *visit, void *user);
void edit_replace(GraphEdit *e, Val old, Val by); /* by gets the name of old if it has none */
/* edit_replace for the first output of a node; false if the types differ. */
bool edit_swap(GraphEdit *e, NodeId n, Val by);
Val edit_current(const GraphEdit *e, Val v); /* replacement of v, or v */
/* Inserts the nodes of region b (without parameters) before the visited node; ret: its results. */
void edit_inline(GraphEdit *e, RegionId b, Val *ret);

/* refine.c: infers all types again, in order. If a pass makes a data-dependent size known, or equal
 * to another, it rebinds the symbol; attributes are rewritten. */
typedef struct SymbolRebind {
  Graph *g;
  Map of; /* symbol -> 1 + index into to */
  VEC(Dim) to;
} SymbolRebind;
SymbolRebind rebind_new(Graph *g); /* in c->scratch */
/* Result i of n will be replaced by a value of type now: symbols set by n get their values from
 * it. */
void rebind_result(SymbolRebind *r, const Node *n, u32 i, const Type *now);
void graph_refine(Graph *g, SymbolRebind *r);

/* graph_text.c, graph_parse.c: exact inverses. Constants above GRAPH_INLINE elements go to
 * `weights`, if given (a blob whose offsets the text names), else they are printed in full. */
enum { GRAPH_INLINE = 64, GRAPH_DEPTH = 64 }; /* maximum nesting of regions */
void graph_print(Graph *g, StrBuf *out, StrBuf *weights);
Graph *graph_parse(Ctx *c, const char *text, size_t n, Str file, const u8 *weights,
                   size_t nweights);

/* graph_check.c: verifier; reports through internal_error(), which names the pass. */
void graph_check(Graph *g);
void graph_check_input(Graph *g); /* checks a graph parsed from text; fails with ERR_input */
/* Kind of an attribute of op from ops.def; false if op does not have it. */
bool attr_spec(Op op, AttrKey key, AttrKind *kind, bool *optional);
bool attr_is_dims(AttrKey key); /* entries of the list are dimensions, not integers */

/* graph_work.c: estimated operation counts. upper: symbolic extents at their maximum, else at their
 * minimum. */
double node_steps(Graph *g, const Node *n, bool upper); /* not for control nodes */
double graph_steps(Graph *g, NodeId *costliest);        /* lower bound; *costliest: top node */
/* Multiply-adds of contractions; symbolic dimensions count as their upper bound or 1. */
double graph_macs(Graph *g, bool bounds);

/* ref.c: slow, simple evaluator; the oracle in tests and the engine of constant folding. */
typedef struct RefOptions {
  bool wide;     /* store and compute floats as f64 */
  u64 seed;      /* seed of random ops */
  u64 max_bytes; /* limit for all results together; 0: none */
} RefOptions;
/* in: one tensor per parameter of region 1; out: one per result, in arena a. */
void ref_run(Graph *g, const RefOptions *o, Tensor *const *in, Tensor **out, Arena *a);
/* Evaluates one node with given operands, for constant folding. out has n->nout slots. */
void ref_node(Graph *g, NodeId n, Tensor *const *in, Tensor **out, Arena *a);

#endif

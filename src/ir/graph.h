/* graph.h: the Graph, SSA over whole tensors.
 *
 * A graph owns values, nodes and blocks in three arrays; everything refers to them by 32-bit id,
 * and id 0 of each means "none". A block is an ordered list of nodes with parameters and results;
 * block 1 is the graph itself, others are bodies of `if` and `loop` and may use values defined in
 * the blocks around them. Values are immutable. A constant is a node like any other (OP_const).
 */
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
typedef struct Pin Pin;
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
    const Dim *list; /* integers, or dimensions where ops.def says so */
    Str s;
    Tensor *t;
  } u;
};

/* Where a value lives; set by the pass fuse. */
typedef enum Home {
  HOME_buffer,   /* in memory */
  HOME_inline,   /* computed where it is used */
  HOME_epilogue, /* in the accumulator of its node, finished by its user */
  HOME_COUNT
} Home;
extern const char *const home_name[HOME_COUNT];

/* What the four numbers of a box are, see suppress. */
typedef enum BoxKind { BX_edges, BX_corners, BX_centre, BX_COUNT } BoxKind;
extern const char *const box_kind_name[BX_COUNT];

/* How a value with rank >= 3 lies in memory when it is not plain row-major. */
struct Layout {
  u32 block; /* channels (dimension 1) in blocks of so many, innermost; 0: where they are */
  i64 lo[MAX_RANK], hi[MAX_RANK]; /* border around dimensions 2 and up */
  i64 fill; /* what the border holds: 0, or of bytes the zero point of those who read them */
};

enum { LAYOUT_BLOCK = 32, LAYOUT_BORDER = 1 << 20 };
enum { LAYOUT_PART = 4 }; /* least part of a block that has vectors of its own */
bool type_can_have_layout(const Type *t);
/* Does the node read its operands, and write its result, element by element? Others need memory in
 * plain order. */
bool node_takes_layout(const Node *n);
bool node_is_view(const Node *n); /* reads its operand through another index: costs nothing */
/* Bytes or i16 as integers, or those less a constant: costs next to nothing, so that they stay what
 * lies in memory. */
bool node_is_decode(Graph *g, const Node *n);
/* What q v = q - *zero is made of by such nodes, *zero a number of the same type; 0: v is something
 * else. */
Val graph_narrow(Graph *g, Val v, i64 *zero);
Val graph_bytes(Graph *g, Val v, i64 *zero); /* the same, only bytes */
Val graph_widen_as(Graph *g, Val v,
                   Val q); /* q as graph_narrow(v) stands in v: as i32, less zero */
/* The bytes q that v = q - *zero is made of, *zero bytes of the same type or constants in their
 * range, in a wider type; or 0, that is v = q. 0: v is something else. So v is from -255 to 255. */
Val graph_bytes_and_zero(Graph *g, Val v, Val *zero);
/* May operand k of a concat, if nobody else reads it, be written straight into its result? Maps,
 * contractions and pools go element by element. A fold whose vectors are blocks of
 * channels is not scattered into a result without them: its sums would be made one by one. It is
 * written as it lies and copied, which costs as much as one step of the fold. */
bool concat_part_fits(Graph *g, const Node *concat, u32 k);

struct Value {
  Type type;
  Str name;   /* label from the model; need not be unique */
  NodeId def; /* 0: block parameter */
  u32 pos;    /* output number of def, or parameter number */
  Home home;
  const Layout *layout; /* NULL: plain */
  bool weight; /* a constant that training changes, see Graph.opens, or the state it is then */
};

struct Node {
  Op op;
  u32 nin, nout, nattr, nblk;
  Val *in; /* 0: absent */
  Val *out;
  Attr *attr; /* sorted by key */
  RegionId blk[2];
  Sym *sym; /* symbols of kind SY_data this node sets, in an order its op defines */
  u32 nsym;
  Loc loc; /* the ONNX node it comes from */
};

struct GraphRegion {
  VEC(Val) param;
  VEC(NodeId) node;
  VEC(Val) ret;
  NodeId owner; /* 0 for block 1 */
};

/* The graph was built for these contents of a parameter (a shape given at run time): callers must
 * pass them. */
struct Pin {
  Val param;
  Tensor *data;
};

/* A result that is a parameter of the next run; before the first, that holds `start`, or zeros, and
 * dimensions that grow from run to run are 0. Callers see neither. */
struct StatePair {
  u32 in, out;   /* positions in the parameters and the results of block 1 */
  i64 most;      /* largest extent it may grow to; 0: what the bounds of its symbols allow */
  i64 window;    /* results depend on no more than the last so many of what was there; 0: on all */
  Tensor *start; /* of the parameter's type, which then has no open dimension; NULL: zeros */
};

/* A constant that each step of training replaces by what the step has computed: a running mean. */
struct RunningStat {
  Val of, next;
};

struct Graph {
  Ctx *c;
  Dims *dims;
  Str name;
  VEC(Value) val;
  VEC(Node) node;
  VEC(GraphRegion) blk;
  VEC(Pin) pin;
  VEC(StatePair) state;
  VEC(RunningStat) drift;
  VEC(Str) out_name; /* names of the results of block 1; parameters carry theirs */
  Scales scale;   /* of quantised inputs and outputs; it says nothing about how they are computed */
  RegionId cur;   /* nodes are appended here */
  Loc loc;        /* given to new nodes */
  bool eager;     /* fold small integer computations while building (import; off for text) */
  bool opens;     /* import: weights are marked and not folded; see train.h */
  bool trains;    /* import: layers do as in training */
  bool ordered;   /* nodes stand in the order in which they are to run */
  bool again;     /* canon or quant has changed something, so that there may be more to do */
  u8 left;        /* what a pass leaves to others, which the pipeline runs next: LEFT_* */
  u64 fold_bytes; /* spent by constant folding, for the budget */
};

/* graph.c */
Graph *graph_new(Ctx *c);
Graph *graph_copy(const Graph *from); /* on its own but for the contents of tensors */
static inline Value *graph_val(Graph *g, Val v) {
  return &g->val.at[v];
}
static inline Node *graph_node(Graph *g, NodeId n) {
  return &g->node.at[n];
}
/* The node that defines v; NULL: a parameter. Building moves nodes: copy what is needed. */
static inline const Node *graph_producer(Graph *g, Val v) {
  NodeId def = graph_val(g, v)->def;
  return def ? graph_node(g, def) : NULL;
}
/* The same if it is op, else NULL. */
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
RegionId graph_region(Graph *g, NodeId owner);           /* new empty block */
Val graph_param(Graph *g, RegionId b, Type t, Str name); /* appends a parameter */
void graph_result(Graph *g, Val v, Str name);            /* appends a result of block 1 */
/* Appends a node to g->cur. Attributes are copied. Types of outputs come from infer_node. Operands
 * and attributes are checked; a violation fails with ERR_input at g->loc. Returns the node. With
 * g->eager, may append a constant (or dims) node instead that has the same first output. */
NodeId graph_add(Graph *g, Op op, const Val *in, u32 nin, const Attr *attr, u32 nattr);
/* Control nodes: blocks are built first (graph_region(g, 0)), then the node is added with its
 * output types. */
NodeId graph_add_control(Graph *g, Op op, const Val *in, u32 nin, const Attr *attr, u32 nattr,
                         const RegionId *blk, u32 nblk);
/* A loop gives n values of its body more, stacked as its scans are; out: the stacks. */
void graph_add_scans(Graph *g, NodeId loop, const Val *v, u32 n, Val *out);
/* Product of the amounts of AT_input_dilation: each part of the result is lowered by itself. */
enum { MOST_INPUT_DILATION = 64 };
const Attr *node_attr(const Node *n, AttrKey key); /* NULL when absent */
i64 node_int(const Node *n, AttrKey key, i64 otherwise);
BoxKind node_box_kind(const Ctx *c, const Node *n);           /* BX_COUNT: there is no such kind */
const Dim *node_list(const Node *n, AttrKey key, u32 *count); /* NULL when absent */
enum { CAST_SMALL = 2 };                                      /* OP_cast: a value of sat */
bool node_cast_sat(const Node *n);                            /* OP_cast: does it saturate? */
/* May the compiler evaluate it once its operands are constants? Not control, whose blocks also use
 * values from outside, nor random numbers, nor checks of indices, whose refusal belongs to the run,
 * nor nodes whose attributes have symbols. */
bool node_folds(const Node *n);
const Tensor *graph_const(Graph *g, Val v); /* the tensor, if v is defined by OP_const; else NULL */
/* Contents of an integer tensor of at most max elements as dimensions, if known (const or dims
 * nodes); returns false if not. A constant entry may be negative there: use only where that is
 * excluded. */
bool graph_ints(Graph *g, Val v, i64 *out, u32 max, u32 *n); /* all constant integers */
bool graph_dim_list(Graph *g, Val v, Dim *out, u32 max,
                    u32 *n);                        /* non-negative constants or symbolic */
const Tensor *graph_pin(const Graph *g, Val param); /* contents it is pinned to, or NULL */
void graph_use_counts(Graph *g, u32 *count); /* count[val]: uses by nodes and block results */

/* graph_state.c */
/* The one axis along which a state changes its extent: it is sym now and `next` in the next run. */
typedef struct Growth {
  u32 axis; /* MAX_RANK: none */
  Sym sym;
  Dim next;
  i64 most; /* see Kept */
} Growth;
/* May `out` be the value of the parameter `in` in the next run? Else *why says what is wrong. */
bool state_fits(Graph *g, Val in, Val out, Growth *how, const char **why);
/* Of a pair that fits. */
Growth state_growth(Graph *g, const StatePair *s);
void graph_check_state(Graph *g, Err code); /* all pairs, and with each other; fails with code */

/* infer.c, infer_control.c: output types from operand types and attributes; checks the node. */
/* Writes n->nout types to out; fails with ERR_input at n->loc. Data symbols are created when n->sym
 * is NULL and kept otherwise. Those of CONTROL come from their blocks. */
void infer_node(Graph *g, Node *n, Type *out);
/* Does the loop run exactly its trip count? And that as a number; -1: it is not known. */
bool loop_is_counted(Graph *g, const Node *n);
i64 loop_trip_count(Graph *g, const Node *n);
void infer_attrs(Graph *g, const Node *n); /* names and kinds as ops.def says */
/* numpy broadcasting of n shapes; fails when they do not fit. */
u32 infer_broadcast(Graph *g, const Type *const *t, u32 n, Dim *out);

/* build.c: short constructors; each appends to g->cur and returns the (first) result.
 * They return the operand itself when there is nothing to do (same shape, same dtype...). */
Val mk_map1(Graph *g, Op op, Val a);
Val mk_map2(Graph *g, Op op, Val a, Val b);
Val mk_select(Graph *g, Val cond, Val a, Val b);
Val mk_cast(Graph *g, Val a, DType to);     /* ONNX Cast rules with saturation for narrow floats */
Val mk_cast_sat(Graph *g, Val a, DType to); /* integers saturate too */
Val mk_cast_small(Graph *g, Val a, DType to); /* likewise, of a number known to be small */
/* Casts of v, if it is one, and of all nodes from `first` on: see `layer` in ops.def. */
void cast_mark(Graph *g, Val v);
void layer_end(Graph *g, NodeId first); /* those that end what was built at g->loc */
Val mk_const(Graph *g, Tensor *t);
Val mk_scalar(Graph *g, DType dt, double x); /* rank 0 */
Val mk_like(Graph *g, Val like, double x);   /* rank 0 scalar of the dtype of like */
Val mk_ints(Graph *g, const i64 *x, u32 n);  /* i64[n] */
Val mk_dims(Graph *g, const Dim *d, u32 n);  /* i64[n]; const when all are constant */
Val mk_dims_as(Graph *g, DType dt, u32 rank, const Dim *d, u32 n); /* i64 or i32, rank 0 or 1 */
Val mk_iota(Graph *g, DType dt, const Dim *shape, u32 rank, u32 axis);
Val mk_reduce(Graph *g, Op op, Val x, const i64 *axes, u32 naxes, bool keep);
Val mk_arg(Graph *g, Op op, Val x, i64 axis, bool keep, bool last);
Val mk_contract(Graph *g, Val a, Val b, const char *spec);
Val mk_matmul(Graph *g, Val a, Val b); /* numpy matmul, any ranks >= 1, batch broadcast */
Val mk_conv(Graph *g, Val x, Val w, i64 group, const i64 *stride, const i64 *dilation,
            const i64 *pad_lo, const i64 *pad_hi);
/* Weights [C, M/group, k...] as a convolution's [M, C/group, k... mirrored]: what goes the other
 * way. */
Val mk_mirror(Graph *g, Val weights, i64 group);
Val mk_pool(Graph *g, Op op, Val x, u32 nspatial, const i64 *window, const i64 *stride,
            const i64 *dilation, const i64 *pad_lo, const i64 *pad_hi);
Val mk_reshape(Graph *g, Val x, const Dim *shape, u32 rank);
Val mk_unsqueeze(Graph *g, Val x, u32 axis); /* one axis of extent 1 inserted before axis */
Val mk_squeeze(Graph *g, Val x, u32 axis);   /* that axis removed */
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
Val mk_check_index(Graph *g, Val idx, const Dim *size,
                   u32 n); /* idx itself where that is certain */
Val mk_assert(Graph *g, Val wrong,
              const char *text); /* zeros, i64; else the run ends and says text */
Val mk_cum(Graph *g, Op op, Val x, i64 axis, bool exclusive, bool reverse);
Val mk_nonzero(Graph *g, Val x);
/* blocks: u8[.., n, bytes]; kind: of qblocks.def; exact: multiplied as floats. */
Val mk_dequantize(Graph *g, Val blocks, const char *kind, bool exact);
Val mk_matmul_quant(Graph *g, const Val *in, u32 nin, const char *kind);
Val mk_bytes(Graph *g, Val strings, i64 k);
Val mk_text(Graph *g, Val rows);
Val mk_random(Graph *g, DType dt, const Dim *shape, u32 rank, i64 seed);
Val mk_nms(Graph *g, const Val *in, BoxKind kind, Dim k); /* scores, boxes, limit, least, most */
void mk_topk(Graph *g, Val x, i64 axis, Dim k, bool largest, Val *values, Val *indices);
/* A loop of `trip` iterations: body is called once to build it, with the counter (i64 scalar) and
 * the carried values; it replaces carried[] by their next values and fills scan[]. On return
 * carried[] and scan[] hold the results. cond: 0 for none, else a bool scalar; the body then also
 * writes *cond. */
typedef void BodyFn(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan);
void mk_loop(Graph *g, Val trip, Val cond, Val *carried, u32 ncarried, Val *scan, u32 nscan,
             BodyFn *body, void *user);

/* int_range.c: is every index in -size..size-1, in every run? One size for all, or one for each
 * place of the last axis. */
bool index_fits(Graph *g, Val idx, const Dim *size, u32 n);
/* And counted from the front? */
bool index_is_certain(Graph *g, Val idx, Dim extent);
/* Between which numbers every element of an integer value lies, in every run. */
void value_int_range(Graph *g, Val v, i64 *lo, i64 *hi);
void value_int_range_in(Graph *g, Val v, i64 *lo, i64 *hi, u32 *left); /* left: as below */
/* float_range.c: the same of floats that are numbers. left: nodes that may still be looked at. */
typedef struct FloatRange {
  double lo, hi;
  bool nan; /* there may be elements that are no numbers */
} FloatRange;
FloatRange value_float_range(Graph *g, Val v, u32 *left); /* nan: not asked for */
FloatRange value_float_range_full(Graph *g, Val v,
                                  u32 *left); /* all of it, for which more is looked at */
FloatRange bounds_outward(DType dt,
                          FloatRange r); /* of what numbers in r become when rounded to dt */
/* most[v]: numbers below it are right as indices wherever v is used as such; 0 stays: it is not. */
void index_limits(Graph *g, i64 *most);
const char *index_error(Graph *g, const Node *n); /* what a run says that node `within` refuses */

/* edit.c: one walk that every graph pass uses. visit sees the nodes of each block in order (a
 * control node before its blocks), operands already replaced; new nodes built during the visit land
 * in front of the node. Returns false to drop the node, whose outputs must then have been replaced;
 * where it changes a node in place it sets `changed`. */
typedef struct Edit {
  Graph *g;
  Val *with; /* with[v]: what replaces v, or v */
  void *user;
  bool changed;
} Edit;
typedef bool EditFn(Edit *e, NodeId n);
bool edit_run(Graph *g, EditFn *visit, void *user);
void edit_replace(Edit *e, Val old, Val by); /* by takes the label if it has none */
/* The same for the first output of a node; false: their types differ. */
bool edit_swap(Edit *e, NodeId n, Val by);
Val edit_current(const Edit *e, Val v); /* what v has been replaced by, or v */
/* Splices the nodes of block b (no parameters) where the visited node stands; its results go to
 * ret. */
void edit_inline(Edit *e, RegionId b, Val *ret);

/* refine.c: types computed again in order. A pass that makes a data-dependent size known, or equal
 * to another, says what the symbol stands for; attributes are rewritten accordingly. */
typedef struct Rebind {
  Graph *g;
  Map of; /* symbol -> 1 + index into to */
  VEC(Dim) to;
} Rebind;
Rebind rebind_new(Graph *g); /* in c->scratch */
/* Result i of n will be replaced by a value of type now: symbols that n sets take their meaning
 * from it. */
void rebind_result(Rebind *r, const Node *n, u32 i, const Type *now);
void graph_refine(Graph *g, Rebind *r);

/* graph_text.c, graph_parse.c: exact inverses. Constants above GRAPH_INLINE elements go to a side
 * file when `side` is given (a blob whose offsets the text names), else they are printed whole. */
enum { GRAPH_INLINE = 64, GRAPH_DEPTH = 64 }; /* deepest nesting of blocks that is read */
void graph_print(Graph *g, StrBuf *out, StrBuf *side);
Graph *graph_parse(Ctx *c, const char *text, size_t n, Str file, const u8 *side, size_t nside);

/* graph_check.c: verifier; leaves through bug() naming the pass. */
void graph_check(Graph *g);
void graph_check_input(Graph *g); /* the same on a text just read: fails with ERR_input */
/* What ops.def says about an attribute of op; false when op has none of that name. */
bool attr_spec(Op op, AttrKey key, AttrKind *kind, bool *optional);
bool attr_is_dims(AttrKey key); /* entries of the list are dimensions, not integers */

/* cost.c: operations, roughly. most: symbolic extents at their largest, else at their smallest. */
double node_steps(Graph *g, const Node *n, bool most); /* not for CONTROL */
double graph_steps(Graph *g, NodeId *dear); /* at least; *dear: the node that takes most of them */
/* Multiply-adds of contractions; open dimensions: their bounds, or 1. */
double graph_macs(Graph *g, bool bounds);

/* ref.c: slow, obvious evaluator; the judge in tests and the engine of constant folding. */
typedef struct RefOptions {
  bool wide;     /* floats are held and computed in f64 */
  u64 seed;      /* of random ops */
  u64 max_bytes; /* budget of all results together; 0: none */
} RefOptions;
/* in: one tensor per parameter of block 1; out: one per result, in arena a. */
void ref_run(Graph *g, const RefOptions *o, Tensor *const *in, Tensor **out, Arena *a);
/* One node whose operands are given; used by folding. out has n->nout slots. */
void ref_node(Graph *g, NodeId n, Tensor *const *in, Tensor **out, Arena *a);

#endif

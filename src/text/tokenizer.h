/* tokenizer.h: text <-> ids of tokens, at run time.
 *
 * A Vocab is a view of one block of bytes, made by vocab_make (vocab.h): everything that a
 * tokeniser knows lies in flat tables there, Unicode included, so that the code below is the same
 * for all models. Plain C99: no heap, no recursion, nothing of the library; its text can stand in
 * generated C. Memory is the caller's: vocab_encode_bytes says how much for a text of n bytes.
 *
 * The way of a text: added tokens are cut out of it; each stretch between them is normalised
 * (steps on characters), cut at added tokens that are meant for normalised text, split into words
 * by scanners, and every word is given to the model.
 */
#ifndef INGOT_TOKENIZER_H
#define INGOT_TOKENIZER_H

#include "base/base.h"

/* static in generated C, which has the text of these files in it (see the Makefile) */
#ifndef TEXT_FN
#define TEXT_FN
#endif

typedef struct Vocab Vocab;                 /* the tables of a tokeniser */
typedef struct Trie Trie;                   /* byte strings with values */
typedef struct TokenDfa TokenDfa;           /* a regular expression as a table of states */
typedef struct CharMap CharMap;             /* characters and what they become */
typedef struct TokenizerStep TokenizerStep; /* one step of normalising or splitting */
typedef struct TokenMerge TokenMerge;       /* two tokens that make a third */
typedef struct Detok Detok;                 /* ids -> text, token by token */

enum {
  VOCAB_MAGIC = 0x434f5649,
  VOCAB_VERSION = 1,
  VOCAB_SPLITS = 8,          /* steps of splitting */
  VOCAB_BAD_BYTE = 0x110000, /* + byte: a byte that is no UTF-8, as a character */
};

#define VOCAB_NONE 0xffffffffu /* no id */

/* What vocab_encode says instead of a number of ids. */
enum {
  VOCAB_FULL = -1, /* more ids than asked for */
  VOCAB_ROOM = -2, /* too little memory */
  VOCAB_SLOW = -3, /* a regular expression goes over the text again and again: see PRETOK_STEPS */
};

typedef enum VocabModel { VM_bpe, VM_unigram, VM_wordpiece } VocabModel;
typedef enum VocabDecode {
  VD_bytes,     /* tokens are bytes */
  VD_spaces,    /* U+2581 is a space; byte tokens are bytes */
  VD_wordpiece, /* a space before each token that does not continue a word */
} VocabDecode;

enum {
  VF_byte_level = 1,    /* tokens are byte strings, and every byte is a symbol to begin with */
  VF_whole_first = 2,   /* a word that is a token is not taken apart */
  VF_byte_fallback = 4, /* what no token says is said by tokens of bytes */
  VF_fuse_unknown = 8,
  VF_strip_first = 16,     /* decoding drops the space that encoding puts in front */
  VF_strip_spaces = 32,    /* ... all of the first token's */
  VF_clean = 64,           /* decoding drops spaces in front of punctuation (WordPiece) */
  VF_narrow_sums = 128,    /* unigram: scores are added as float */
  VF_bad_one_by_one = 256, /* decoding: every bad byte is a U+FFFD of its own */
};

/* Of a token. */
enum {
  TF_special = 1,
  TF_added = 2,
  TF_byte = 4,
  TF_unused = 8,
  TF_unknown = 16,
  TF_lstrip = 32,
  TF_rstrip = 64,
  TF_single_word = 128
};

typedef enum NormKind {
  NK_compose,         /* canonical composition; behind NK_expand */
  NK_expand,          /* map a, then canonical order */
  NK_map,             /* map a */
  NK_drop,            /* characters of set a */
  NK_replace_set,     /* characters of set a become b */
  NK_surround,        /* spaces around characters of set a */
  NK_replace,         /* the characters a..a+b of the pool by c..c+d */
  NK_prepend,         /* characters a..a+b; c: PREPEND_* */
  NK_trim,            /* white space; a: left, b: right */
  NK_charsmap,        /* rules of SentencePiece, longest first */
  NK_fix_utf8,        /* bytes that are no UTF-8 become U+FFFD */
  NK_collapse_spaces, /* no spaces at the ends, one between words */
  NK_collapse_runs,   /* two or more of character a become one b */
} NormKind;

enum {
  PREPEND_unless = 1 /* it begins so */,
  PREPEND_first = 2 /* only at the beginning of the text */
};

/* What a scanner finds is a word of its own; is left out; alone is left; belongs to what stands in
 * front of it, or behind it; is a word together with what it finds next. */
typedef enum SplitKind {
  SB_isolated,
  SB_removed,
  SB_kept,
  SB_previous,
  SB_next,
  SB_joined
} SplitKind;

struct TokenizerStep {
  u32 kind; /* NormKind; or SplitKind, of what scanner a finds */
  u32 a, b, c, d;
};

struct Trie { /* children of node i are first[i] to first[i + 1], by ascending label */
  const u32 *first;
  const u32 *value; /* 0: none */
  const u8 *label;
  u32 n;
};

struct TokenDfa {
  u32 nstate, nclass, nrun;
  const u8 *ascii;  /* classes of characters below 128 */
  const u32 *run;   /* first character << 8 | class */
  const u16 *table; /* [state][class, or nclass for the end]: next state, | DFA_accept */
};
enum { DFA_dead = 0, DFA_start = 1, DFA_accept = 0x8000 };

struct CharMap {
  const u32 *key, *at, *unit; /* key ascending; unit[at[i]..at[i + 1]] */
  u32 n;
};

struct TokenMerge {
  u32 left, right, id, rank;
};

/* Sections of the block, in the order of VocabSection. TokenSplitter of 32 bits; labels, bytes and
 * flags are bytes, score is double (the last one: of unknown text). */
/* clang-format off */
#define VOCAB_SECTIONS(X) \
  X(token_at) X(token_byte) X(token_flag) X(trie_first) X(trie_value) X(trie_label) \
  X(raw_first) X(raw_value) X(raw_label) X(norm_first) X(norm_value) X(norm_label) X(merge) \
  X(slot) X(made_by) X(score) X(byte_id) X(norm) X(prep) X(split) X(unit) X(scanner) \
  X(scanner_at) X(set) X(set_at) X(combining) X(map_at) X(map_key) X(map_start) X(map_unit) \
  X(compose) X(charsmap) X(prefix) X(suffix) X(stop) X(chat)
/* clang-format on */
#define VOCAB_PART_ENUM(name) VP_##name,
typedef enum VocabSection { VOCAB_SECTIONS(VOCAB_PART_ENUM) VP_END } VocabSection;

typedef struct VocabHeader {
  u32 magic, version, bytes;
  u32 model, decode, flags;
  u32 ntoken; /* ids from there on are of symbols that are no tokens */
  u32 nsymbol;
  u32 unknown, bos, eos, pad; /* or VOCAB_NONE */
  u32 longest;                /* bytes of a token */
  u32 word_max;               /* WordPiece: characters of a word */
  u32 dash_node;              /* WordPiece: where tokens inside of a word begin in the trie */
  u32 slot_mask, slot_seed;
  u32 charsmap_trie;    /* bytes of its trie */
  u32 word_scanner;     /* of word characters, or VOCAB_NONE */
  u32 grow, more;       /* normalised characters: at most grow a byte of text, and more */
  u32 part[2 * VP_END]; /* where it begins, bytes */
} VocabHeader;

struct Vocab {
  const u8 *base;
  const VocabHeader *head;
  Trie token, raw, norm;
};

struct Detok {
  u8 kept[4]; /* bytes of a character that is not whole yet */
  u8 nkept;
  u8 begun;   /* something was put out */
  u8 special; /* special tokens are put out as text */
};

/* ---- vocab_view.c ---- */
/* False: these are not the bytes of a vocabulary. They must be aligned to 8. */
TEXT_FN bool vocab_open(Vocab *v, const void *at, size_t n);
TEXT_FN const void *vocab_section(const Vocab *v, VocabSection p, u32 *count, u32 size);
TEXT_FN const u8 *vocab_token(const Vocab *v, u32 id, u32 *n);
TEXT_FN u8 vocab_flags(const Vocab *v, u32 id);
TEXT_FN u32 trie_step(const Trie *t, u32 node,
                      u8 byte); /* VOCAB_NONE: there is none; 0 is the root */
/* The longest string that begins at p; its value - 1, or VOCAB_NONE. */
TEXT_FN u32 trie_longest(const Trie *t, const u8 *p, size_t n, size_t *length);
TEXT_FN u32 utf8_get(const u8 *p, size_t n, u32 *length); /* a character, or VOCAB_BAD_BYTE + *p */
TEXT_FN u32 utf8_put(u8 *p, u32 ch);
TEXT_FN bool char_is_space(u32 ch);

static inline u32 merge_hash(u32 left, u32 right, u32 seed) {
  u64 key = ((u64)left << 32 | right) * 0x9e3779b97f4a7c15u + seed;
  return (u32)((key ^ key >> 29) * 0xbf58476d1ce4e5b9u >> 32);
}

/* ---- pretokenize.c ---- */
TEXT_FN TokenDfa vocab_dfa(const Vocab *v, u32 k);
/* Bytes of the match; 0: none. Adds the characters that it went over to *steps. */
TEXT_FN size_t dfa_match(const TokenDfa *s, const u8 *p, size_t n, size_t *steps);
/* Steps of scanners for a stretch: for each byte, and in any case. */
enum { PRETOK_STEPS = 256, PRETOK_SLACK = 1 << 16 };
/* The words of a stretch, in order. steps > most: too many, and the words are not all of them. */
typedef struct TokenSplitter {
  const Vocab *v;
  const u8 *at;
  u32 nstep, level;
  size_t pos[VOCAB_SPLITS + 1], end[VOCAB_SPLITS + 1];
  size_t steps, most;
} TokenSplitter;
TEXT_FN TokenSplitter pretok_begin(const Vocab *v, const u8 *at, size_t n);
TEXT_FN bool pretok_next(TokenSplitter *w, const u8 **at, size_t *n);

/* ---- tokenizer_norm.c ---- */
typedef struct TokenizerMem {
  u8 *at;
  size_t n;
} TokenizerMem;
TEXT_FN void *tokenizer_alloc(TokenizerMem *r, size_t n); /* NULL: there is no more */
/* Applies the steps of the part to the text; what comes out lies in r, if it is another. False:
 * room. */
TEXT_FN bool vocab_normalise(const Vocab *v, VocabSection steps, bool first, const u8 **at,
                             size_t *n, TokenizerMem *r);

/* ---- tokenizer_model.c ---- */
typedef struct IdList {
  u32 *at;
  size_t n, max;
  bool full;
} IdList;
TEXT_FN size_t vocab_viterbi_window(const Vocab *v); /* sums of scores that unigram keeps */
TEXT_FN bool vocab_encode_word(const Vocab *v, const u8 *at, size_t n, IdList *out,
                               TokenizerMem r); /* false: room */

/* ---- encode.c ---- */
enum {
  VE_parse_special = 1, /* texts of special tokens become these tokens */
  VE_add_special = 2,   /* with the tokens that the model wants in front and behind */
};
/* Bytes of memory for a text of n bytes, at most VOCAB_PER_BYTE * n and a constant. Enough for
 * every text that the normaliser makes at most twice as long, and for all if VOCAB_PER_BYTE is not
 * reached: unigram and WordPiece even for the worst of NFKC. Otherwise vocab_encode may say
 * VOCAB_ROOM. */
enum { VOCAB_PER_BYTE = 60, VOCAB_SLACK = 1 << 16 };
TEXT_FN size_t vocab_encode_bytes(const Vocab *v, size_t n);
/* Number of ids, or VOCAB_FULL, VOCAB_ROOM, VOCAB_SLOW. marked, or NULL: a byte for each byte of
 * text, not 0 where it must not be part of a special token, whatever flags say. room: aligned to 8.
 */
TEXT_FN i64 vocab_encode(const Vocab *v, const void *text, size_t n, const u8 *marked, u32 flags,
                         u32 *ids, size_t max, void *room, size_t nroom);

/* ---- decode.c ---- */
TEXT_FN size_t detok_max_bytes(const Vocab *v); /* bytes that one detok_put may write */
TEXT_FN size_t detok_put(Detok *d, const Vocab *v, u32 id, u8 *to);
TEXT_FN size_t detok_end(Detok *d, const Vocab *v,
                         u8 *to); /* at most 12 bytes: what is left is no character */
TEXT_FN bool vocab_stops(const Vocab *v, u32 id);

#endif

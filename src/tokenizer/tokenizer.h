/* tokenizer.h: text <-> token ids.
 *
 * A Vocab is a view of one block of bytes, made by vocab_make (vocab.h). It has all tables of a
 * tokenizer, including Unicode data, so that this code is the same for all models. C99 without
 * heap, recursion or other ingot code; also part of generated C. The caller provides memory:
 * vocab_encode_bytes returns the size for a text of n bytes.
 *
 * Steps: find added tokens, normalize the text between them, find added tokens of normalized text,
 * split into words with scanners, and apply the model to each word.
 */
#ifndef INGOT_TOKENIZER_H
#define INGOT_TOKENIZER_H

#include "base/base.h"

/* static in generated C, which includes these files (tools/embed.txt) */
#ifndef TEXT_FN
#define TEXT_FN
#endif

typedef struct Vocab Vocab;                 /* tables of a tokenizer */
typedef struct Trie Trie;                   /* byte strings with values */
typedef struct TokenDfa TokenDfa;           /* a regular expression as a DFA */
typedef struct CharMap CharMap;             /* maps characters to strings */
typedef struct TokenizerStep TokenizerStep; /* a normalization or splitting step */
typedef struct TokenMerge TokenMerge;       /* two tokens that make a third */
typedef struct Detok Detok;                 /* incremental decoder */

enum {
  VOCAB_MAGIC = 0x434f5649,
  VOCAB_VERSION = 1,
  VOCAB_SPLITS = 8,          /* max splitting steps */
  VOCAB_BAD_BYTE = 0x110000, /* + byte: an invalid UTF-8 byte */
};

#define VOCAB_NONE 0xffffffffu /* no id */

/* Errors of vocab_encode. */
enum {
  VOCAB_FULL = -1, /* more than `max` ids */
  VOCAB_ROOM = -2, /* too little memory */
  VOCAB_SLOW = -3, /* too many DFA steps: see PRETOK_STEPS */
};

typedef enum VocabModel { VM_bpe, VM_unigram, VM_wordpiece } VocabModel;
typedef enum VocabDecode {
  VD_bytes,     /* tokens are byte strings */
  VD_spaces,    /* U+2581 is a space; byte tokens are bytes */
  VD_wordpiece, /* a space before tokens that start a word */
} VocabDecode;

enum {
  VF_byte_level = 1,    /* tokens are byte strings; every byte is an initial symbol */
  VF_whole_first = 2,   /* a word that is a token is not split */
  VF_byte_fallback = 4, /* unknown characters become byte tokens */
  VF_fuse_unknown = 8,
  VF_strip_first = 16,     /* decoding drops the space that encoding prepends */
  VF_strip_spaces = 32,    /* drops all leading spaces of the first token */
  VF_clean = 64,           /* decoding drops spaces before punctuation (WordPiece) */
  VF_narrow_sums = 128,    /* unigram: scores are summed as float */
  VF_bad_one_by_one = 256, /* decoding: one U+FFFD per invalid byte */
};

/* Flags of a token. */
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
  NK_compose,         /* canonical composition; after NK_expand */
  NK_expand,          /* map a, then canonical ordering */
  NK_map,             /* map a */
  NK_drop,            /* drops characters of set a */
  NK_replace_set,     /* replaces characters of set a by b */
  NK_surround,        /* adds spaces around characters of set a */
  NK_replace,         /* replaces the characters a..a+b of the pool by c..c+d */
  NK_prepend,         /* prepends characters a..a+b; c: PREPEND_* */
  NK_trim,            /* strips white space; a: left, b: right */
  NK_charsmap,        /* SentencePiece rules, longest match */
  NK_fix_utf8,        /* invalid UTF-8 bytes become U+FFFD */
  NK_collapse_spaces, /* strips spaces at both ends, one between words */
  NK_collapse_runs,   /* replaces runs of two or more of character a by one b */
} NormKind;

enum {
  PREPEND_unless = 1 /* unless the text starts with it */,
  PREPEND_first = 2 /* only at the start of the text */
};

typedef enum SplitKind {              /* use of a scanner's matches */
                         SB_isolated, /* each match is a word */
                         SB_removed,  /* matches are dropped */
                         SB_kept,     /* only matches are kept */
                         SB_previous, /* a match is appended to the text before it */
                         SB_next,     /* a match is prepended to the text after it */
                         SB_joined    /* consecutive matches are one word */
} SplitKind;

struct TokenizerStep {
  u32 kind; /* NormKind, or SplitKind for matches of scanner a */
  u32 a, b, c, d;
};

struct Trie { /* children of node i are first[i] to first[i + 1], sorted by label */
  const u32 *first;
  const u32 *value; /* 0: none */
  const u8 *label;
  u32 n;
};

struct TokenDfa {
  u32 nstate, nclass, nrun;
  const u8 *ascii;  /* classes of ASCII characters */
  const u32 *run;   /* first character << 8 | class */
  const u16 *table; /* [state][class, or nclass for the end]: next state | DFA_accept */
};
enum { DFA_dead = 0, DFA_start = 1, DFA_accept = 0x8000 };

struct CharMap {
  const u32 *key, *at, *unit; /* key sorted; unit[at[i]..at[i + 1]] */
  u32 n;
};

struct TokenMerge {
  u32 left, right, id, rank;
};

/* Sections of the block, in the order of VocabSection. Words of 32 bits, except labels, bytes and
 * flags (bytes) and score (double; the last one is for unknown text). */
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
  u32 ntoken; /* ids from here on are symbols, not tokens */
  u32 nsymbol;
  u32 unknown, bos, eos, pad; /* or VOCAB_NONE */
  u32 longest;                /* bytes of the longest token */
  u32 word_max;               /* WordPiece: max characters of a word */
  u32 dash_node;              /* WordPiece: trie node of tokens inside a word */
  u32 slot_mask, slot_seed;
  u32 charsmap_trie;    /* bytes of its trie */
  u32 word_scanner;     /* word characters, or VOCAB_NONE */
  u32 grow, more;       /* normalized characters: at most grow per byte of text, plus more */
  u32 part[2 * VP_END]; /* offset and size of each section */
} VocabHeader;

struct Vocab {
  const u8 *base;
  const VocabHeader *head;
  Trie token, raw, norm;
};

struct Detok {
  u8 kept[4]; /* an incomplete character */
  u8 nkept;
  u8 begun;   /* something was written */
  u8 special; /* write special tokens as text */
};

/* ---- vocab_view.c ---- */
/* False if the bytes are not a vocabulary. They must be aligned to 8. */
TEXT_FN bool vocab_open(Vocab *v, const void *at, size_t n);
TEXT_FN const void *vocab_section(const Vocab *v, VocabSection p, u32 *count, u32 size);
TEXT_FN const u8 *vocab_token(const Vocab *v, u32 id, u32 *n);
TEXT_FN u8 vocab_flags(const Vocab *v, u32 id);
/* VOCAB_NONE: no child; node 0 is the root */
TEXT_FN u32 trie_step(const Trie *t, u32 node, u8 byte);
/* The longest string at p: its value - 1, or VOCAB_NONE. */
TEXT_FN u32 trie_longest(const Trie *t, const u8 *p, size_t n, size_t *length);
/* A character, or VOCAB_BAD_BYTE + *p. */
TEXT_FN u32 utf8_get(const u8 *p, size_t n, u32 *length);
TEXT_FN u32 utf8_put(u8 *p, u32 ch);
TEXT_FN bool char_is_space(u32 ch);

static inline u32 merge_hash(u32 left, u32 right, u32 seed) {
  u64 key = ((u64)left << 32 | right) * 0x9e3779b97f4a7c15u + seed;
  return (u32)((key ^ key >> 29) * 0xbf58476d1ce4e5b9u >> 32);
}

/* ---- pretokenize.c ---- */
TEXT_FN TokenDfa vocab_dfa(const Vocab *v, u32 k);
/* Length of the match, or 0. Adds the characters read to *steps. */
TEXT_FN size_t dfa_match(const TokenDfa *s, const u8 *p, size_t n, size_t *steps);
/* Limit of DFA steps: per byte of text, and constant. */
enum { PRETOK_STEPS = 256, PRETOK_SLACK = 1 << 16 };
/* Iterates over the words of a text. steps > most: stopped early, after too many steps. */
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
TEXT_FN void *tokenizer_alloc(TokenizerMem *r, size_t n); /* NULL: out of memory */
/* Applies the steps of a section to the text. A changed text is in r. False: out of memory. */
TEXT_FN bool vocab_normalize(const Vocab *v, VocabSection steps, bool first, const u8 **at,
                             size_t *n, TokenizerMem *r);

/* ---- tokenizer_model.c ---- */
typedef struct IdList {
  u32 *at;
  size_t n, max;
  bool full;
} IdList;
TEXT_FN size_t vocab_viterbi_window(const Vocab *v); /* scores that unigram keeps */
/* False: out of memory. */
TEXT_FN bool vocab_encode_word(const Vocab *v, const u8 *at, size_t n, IdList *out, TokenizerMem r);

/* ---- encode.c ---- */
enum {
  VE_parse_special = 1, /* parse special tokens in the text */
  VE_add_special = 2,   /* add the special tokens of the model at both ends */
};
/* Bytes of memory for a text of n bytes, at most VOCAB_PER_BYTE * n plus a constant. Enough for
 * NFKC of any text that has places where no merge crosses, and for every text if the result is
 * below VOCAB_PER_BYTE. Otherwise vocab_encode may return VOCAB_ROOM. */
enum { VOCAB_PER_BYTE = 60, VOCAB_SLACK = 1 << 16 };
TEXT_FN size_t vocab_encode_bytes(const Vocab *v, size_t n);
/* Returns the number of ids, or VOCAB_FULL, VOCAB_ROOM, VOCAB_SLOW. marked: NULL, or one byte per
 * byte of text; nonzero: never part of a special token. room: aligned
 * to 8. */
TEXT_FN i64 vocab_encode(const Vocab *v, const void *text, size_t n, const u8 *marked, u32 flags,
                         u32 *ids, size_t max, void *room, size_t nroom);

/* ---- decode.c ---- */
TEXT_FN size_t detok_max_bytes(const Vocab *v); /* max bytes that one detok_put writes */
TEXT_FN size_t detok_put(Detok *d, const Vocab *v, u32 id, u8 *to);
/* At most 12 bytes, for an incomplete character. */
TEXT_FN size_t detok_end(Detok *d, const Vocab *v, u8 *to);
TEXT_FN bool vocab_stops(const Vocab *v, u32 id);

#endif

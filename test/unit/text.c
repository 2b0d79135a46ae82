/* Text <-> ids. Without arguments: what needs no files, such as the time that hostile texts take.
 *
 * `text MODEL FILE FLAGS` reads texts, each behind its length as 4 bytes, and prints a line of ids
 * for each, then `|` and, in hexadecimal, the text that they give back. FLAGS: VE_* as a number; 4:
 * the text is the message of a user, and ids are those of the chat template. `text MODEL FILE`
 * writes the block of the vocabulary, `text MODEL` the memory that a text of 1,000,000 bytes takes.
 */
#include "front/llm/vocab_read.h"
#include "check.h"
#include "chat/chat.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Open {
  const char *path;
  const char *json;
  VocabBlob file;
} Open;

static void open_file(Ctx *c, void *arg) {
  Open *o = arg;
  if (o->path) {
    o->file = vocab_file(c, o->path, &c->keep);
    return;
  }
  JsonDoc d = json_read(c, (const u8 *)o->json, strlen(o->json), LOC_NONE, &c->keep);
  o->file.at = vocab_make(vocab_from_json(&d, NULL, &c->keep), &o->file.n);
}

static i64 encode(const Vocab *v, const u8 *text, size_t n, u32 flags, u32 **ids) {
  size_t room = vocab_encode_bytes(v, n), max = 4 * n + 16;
  void *work = malloc(room);
  *ids = malloc(max * sizeof **ids);
  i64 count = vocab_encode(v, text, n, NULL, flags, *ids, max, work, room);
  free(work);
  return count;
}

typedef struct Chat {
  const Vocab *v;
  ChatMessage m;
  const u32 *ids;
  size_t n;
} Chat;

static void chat(Ctx *c, void *arg) {
  Chat *k = arg;
  k->ids = chat_ids(c, k->v, &k->m, 1, true, 0, LOC_NONE, &c->work, &k->n);
}

static size_t decode(const Vocab *v, const u32 *ids, i64 n, u8 *to) {
  Detok d = {0};
  size_t at = 0;
  u8 *piece = malloc(detok_max_bytes(v));
  for (i64 i = 0; i < n; i++) {
    size_t got = detok_put(&d, v, ids[i], piece);
    memcpy(to + at, piece, got);
    at += got;
  }
  free(piece);
  return at + detok_end(&d, v, to + at);
}

static int convert(const char *model, const char *path, u32 flags) {
  Ctx *c = ctx_new(NULL, NULL);
  Open o = {.path = model};
  Err e = ctx_protect(c, open_file, &o);
  if (e) {
    fprintf(stderr, "%s\n", c->diags->text);
    return (int)e;
  }
  Vocab v;
  FILE *f = fopen(path, "rb");
  u8 head[4];
  if (!f || !vocab_open(&v, o.file.at, o.file.n)) return 1;
  while (fread(head, 1, 4, f) == 4) {
    size_t n = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    u8 *text = malloc(n + 1);
    u32 *ids;
    if (fread(text, 1, n, f) != n) return 1;
    i64 count = encode(&v, text, n, flags & 3, &ids);
    if (count < 0) return 1;
    if (flags & 4) {
      Chat k = {.v = &v, .m = {"user", (const char *)text, n}};
      if (ctx_protect(c, chat, &k)) return fprintf(stderr, "%s\n", c->diags->text), 1;
      count = (i64)k.n;
      ids = realloc(ids, (k.n + 1) * sizeof *ids);
      memcpy(ids, k.ids, k.n * sizeof *ids);
    }
    u8 *back = malloc((size_t)count * detok_max_bytes(&v) + 16);
    for (i64 i = 0; i < count; i++) printf("%u ", ids[i]);
    size_t nback = decode(&v, ids, count, back);
    printf("| ");
    for (size_t i = 0; i < nback; i++) printf("%02x", back[i]);
    printf("\n");
    free(back);
    free(ids);
    free(text);
  }
  fclose(f);
  ctx_free(c);
  return 0;
}

/* A word of a million letters: n log n, not n * n, for each model. */
static void check_time(const char *json, size_t want) {
  enum { N = 1 << 20 };
  Ctx *c = ctx_new(NULL, NULL);
  Open o = {.json = json};
  Vocab v;
  if (!CHECK(ctx_protect(c, open_file, &o) == ERR_ok)) {
    fprintf(stderr, "%s\n", c->diags->text);
    return;
  }
  CHECK(vocab_open(&v, o.file.at, o.file.n));
  u8 *text = malloc(N);
  u32 *ids;
  memset(text, 'a', N);
  clock_t start = clock();
  i64 count = encode(&v, text, N, 0, &ids);
  CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 20);
  CHECK(count == (i64)want);
  u32 few[4];
  u64 room;
  CHECK(vocab_encode(&v, text, 4 * 64, NULL, 0, few, 1, &room, 0) == VOCAB_ROOM ||
        v.head->model == VM_wordpiece);
  free(ids);
  free(text);
  ctx_free(c);
}

static void check_ids(const char *json, const char *text, const u32 *want, i64 nwant) {
  Ctx *c = ctx_new(NULL, NULL);
  Open o = {.json = json};
  Vocab v;
  u32 *ids;
  if (!CHECK(ctx_protect(c, open_file, &o) == ERR_ok && vocab_open(&v, o.file.at, o.file.n))) {
    fprintf(stderr, "%s\n", c->diags ? c->diags->text : json);
    return;
  }
  i64 n = encode(&v, (const u8 *)text, strlen(text), 0, &ids);
  CHECK(n == nwant && !memcmp(ids, want, (size_t)nwant * sizeof *want));
  free(ids);
  ctx_free(c);
}

/* Behind a backslash, a character that is not ASCII is itself, whatever its low byte is. */
static void check_escape(void) {
  check_ids("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\\xc5\xb3\"},"
            "\"behavior\":\"Isolated\",\"invert\":false},\"model\":{\"type\":\"BPE\",\"vocab\":{"
            "\"a\":0,\"\xc5\xb3\":1,\"a\xc5\xb3\":2},\"merges\":[\"a \xc5\xb3\"]}}",
            "a\xc5\xb3", (const u32[]){0, 1}, 2);
}

/* Rules "a" -> "x" and, in the middle of a character, "a\xc3" -> "y": the second is never taken. */
static void check_rule(void) {
  enum { UNITS = 256, BYTES = 4 + 4 * UNITS + 4 };
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  u32 unit[UNITS] = {0x60 << 10, 'a' | 0x100 | 3 << 10,
                     0x80000000u, [4] = 0x80000000u | 2, [0xc1] = 0xc3 | 0x100 | 0xc5 << 10};
  u8 map[BYTES + 2] = {(4 * UNITS) & 255, (4 * UNITS) >> 8};
  char json[2048] = "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"";
  size_t n = strlen(json);
  for (u32 i = 0; i < 4 * UNITS; i++) map[4 + i] = (u8)(unit[i / 4] >> (8 * (i % 4)));
  memcpy(map + 4 + 4 * UNITS, "x\0y", 4);
  for (u32 i = 0; i < BYTES; i += 3) {
    u32 three = (u32)map[i] << 16 | (u32)map[i + 1] << 8 | map[i + 2];
    for (int k = 18; k >= 0; k -= 6) json[n++] = digits[three >> k & 63];
  }
  snprintf(json + n, sizeof json - n,
           "\"},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],"
           "[\"x\",-1],[\"y\",-1],[\"\xc3\xa9\",-1]]}}");
  check_ids(json, "a\xc3\xa9", (const u32[]){1, 3}, 2);
}

/* The block of a vocabulary, for programs that have it with them. */
static int write_block(const char *model, const char *path) {
  Ctx *c = ctx_new(NULL, NULL);
  Open o = {.path = model};
  FILE *f = fopen(path, "wb");
  if (!f || ctx_protect(c, open_file, &o)) return 1;
  bool good = fwrite(o.file.at, 1, o.file.n, f) == o.file.n;
  ctx_free(c);
  return fclose(f) || !good;
}

static int print_room(const char *model) {
  Ctx *c = ctx_new(NULL, NULL);
  Open o = {.path = model};
  Vocab v;
  if (ctx_protect(c, open_file, &o) || !vocab_open(&v, o.file.at, o.file.n)) return 1;
  printf("%zu\n", vocab_encode_bytes(&v, 1000000));
  ctx_free(c);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2) return print_room(argv[1]);
  if (argc == 3) return write_block(argv[1], argv[2]);
  if (argc > 3) return convert(argv[1], argv[2], (u32)atoi(argv[3]));
  check_time(
      "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{"
      "\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1,\"aaaa\":"
      "2,\"aaaaaaaa\":3},\"merges\":[\"a a\",\"aa aa\",\"aaaa aaaa\"]}}",
      (1 << 20) / 8);
  check_time("{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,"
             "\"vocab\":[[\"<unk>\",0],"
             "[\"a\",-1],[\"aaaa\",-2]]}}",
             (1 << 20) / 4);
  check_time("{\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"model\":{\"type\":\"WordPiece\","
             "\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"##aaa\":2}}}",
             1);
  check_escape();
  check_rule();
  return check_end();
}

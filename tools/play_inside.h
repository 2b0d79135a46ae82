/* play_inside.h: the player inside ingot, for machines without a C compiler.
 *
 * In: an opened language model, and the arguments of tools/player.c. Out: the behavior of that
 * program. This text follows that of the program (build/gen/play_inside.c). It fills the program's
 * tables from the model and runs the model as bytecode: answers have the same bits but are slower.
 * The arena of the program holds one number: the positions in the KV cache. */
#include "ingot.h"

static struct {
  Ingot *m;
  IngotChatModel tables;
  IngotStatus status;
  Value in, out;
  StateSlot kept;
  int64_t size[1];
} playing;

static int play_call(void *arena, const int64_t *size, uint64_t seed, const void *const *in,
                     void *const *out, int64_t *const *shape) {
  int64_t *position = arena;
  (void)seed, (void)shape;
  playing.status =
      ingot_feed(playing.m, in[0], (size_t)size[0], (uint64_t)*position, (float *)out[0]);
  *position += size[0];
  return (int)playing.status;
}

static const char *play_why(int status) {
  uint32_t n = ingot_message_count(playing.m);
  (void)status;
  return n ? ingot_message(playing.m, n - 1, NULL) : "the run failed";
}

static void play_reset(void *arena) {
  memset(arena, 0, sizeof(int64_t));
}

int play_model_here(Ingot *m, int argc, char **argv) {
  static Model model;
  static Player player;
  IngotChatModel *s = &playing.tables;
  playing.m = m;
  IngotStatus status = ingot_chat_model(m, s);
  if (status) return -(int)status;
  playing.in = (Value){.name = "ids", .kind = 'i', .size = 4, .rank = 1};
  playing.in.max[0] = (int64_t)s->chunk;
  playing.in.coef[0] = 1;
  playing.out = (Value){.name = "logits", .kind = 'f', .size = 4, .rank = 1};
  playing.out.max[0] = (int64_t)s->logits;
  model = (Model){.name = "ingot play",
                  .nin = 1,
                  .nout = 1,
                  .nsym = 1,
                  .nkept = 1,
                  .in = &playing.in,
                  .out = &playing.out,
                  .kept = &playing.kept,
                  .size = playing.size,
                  .arena = 64,
                  .call = play_call,
                  .why = play_why,
                  .reset = play_reset,
                  .threads = 1};
  player = (Player){.vocab = s->vocab,
                    .nvocab = s->nvocab,
                    .token_bytes = s->token_bytes,
                    .kv_bytes = s->kv_bytes,
                    .context = (long)s->context,
                    .ring = (long)s->ring,
                    .day = s->day,
                    .system = s->prompt,
                    .sampling = {s->sampling.temperature, s->sampling.top_k, s->sampling.top_p,
                                 s->sampling.min_p, s->sampling.repeat}};
  play_model = &model;
  play_player = &player;
  return player_main(argc, argv);
}

/* Reads an edited line, for `ingot repl`. */
char *play_read_line(const char *prompt);
char *play_read_line(const char *prompt) {
  static Edit edit;
  return edit_line(&edit, prompt);
}

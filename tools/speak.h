/* speak.h: the player inside ingot, for machines without a C compiler.
 *
 * In: an opened language model, and the arguments of tools/player.c. Out: the behaviour of that
 * program. This text follows that of the program (build/gen/speak.c). It fills the program's tables
 * from the model and runs the model as bytecode: answers have the same bits but are slower. The
 * arena of the program holds one number: the positions in the KV cache. */
#include "ingot.h"

static struct {
  Ingot *m;
  IngotSpeech speech;
  IngotStatus status;
  Value in, out;
  StateSlot kept;
  int64_t size[1];
} speaking;

static int speak_call(void *arena, const int64_t *size, uint64_t seed, const void *const *in,
                      void *const *out, int64_t *const *shape) {
  int64_t *position = arena;
  (void)seed, (void)shape;
  speaking.status =
      ingot_feed(speaking.m, in[0], (size_t)size[0], (uint64_t)*position, (float *)out[0]);
  *position += size[0];
  return (int)speaking.status;
}

static const char *speak_why(int status) {
  uint32_t n = ingot_message_count(speaking.m);
  (void)status;
  return n ? ingot_message(speaking.m, n - 1, NULL) : "the run failed";
}

static void speak_reset(void *arena) {
  memset(arena, 0, sizeof(int64_t));
}

int speak(Ingot *m, int argc, char **argv) {
  static Model model;
  static Player player;
  IngotSpeech *s = &speaking.speech;
  speaking.m = m;
  IngotStatus status = ingot_speech(m, s);
  if (status) return -(int)status;
  speaking.in = (Value){.name = "ids", .kind = 'i', .size = 4, .rank = 1};
  speaking.in.max[0] = (int64_t)s->chunk;
  speaking.in.coef[0] = 1;
  speaking.out = (Value){.name = "logits", .kind = 'f', .size = 4, .rank = 1};
  speaking.out.max[0] = (int64_t)s->logits;
  model = (Model){.name = "ingot play",
                  .nin = 1,
                  .nout = 1,
                  .nsym = 1,
                  .nkept = 1,
                  .in = &speaking.in,
                  .out = &speaking.out,
                  .kept = &speaking.kept,
                  .size = speaking.size,
                  .arena = 64,
                  .call = speak_call,
                  .why = speak_why,
                  .reset = speak_reset,
                  .threads = 1};
  player = (Player){.vocab = s->vocab,
                    .nvocab = s->nvocab,
                    .token_bytes = s->token_bytes,
                    .kv_bytes = s->kv_bytes,
                    .context = (long)s->context,
                    .system = s->prompt,
                    .chat = {.open = s->open,
                             .open_system = s->open_system,
                             .system = s->system,
                             .ask = s->ask,
                             .next = s->next,
                             .none = s->none,
                             .trims = s->trims}};
  speak_model = &model;
  speak_player = &player;
  return player_main(argc, argv);
}

/* Reads an edited line, for `ingot repl`. */
char *speak_line(const char *prompt);
char *speak_line(const char *prompt) {
  static Edit edit;
  return edit_line(&edit, prompt);
}

/* edit.h: line editor with history; part of the text of tools/player.c.
 *
 * On a terminal: arrows, Home and End, Ctrl-A E B F, Backspace, Delete, Ctrl-U K W, up and down
 * (Ctrl-P N) for history, Ctrl-L, Ctrl-C to clear the line, Ctrl-D on an empty line to end. A line
 * longer than the terminal scrolls sideways; pasted newlines become spaces. Otherwise it reads
 * plain lines. Needs POSIX. Text is UTF-8; a character takes one or two columns, a combining mark
 * none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { EDIT_LINES = 200, EDIT_BYTES = 1 << 16 };

typedef struct Edit {
  char *line; /* EDIT_BYTES */
  size_t n, at;
  char *past[EDIT_LINES]; /* a ring: the newest is npast - 1 */
  size_t npast, shown;    /* shown: line of the history; npast: the new line */
  char *draft;            /* the new line while an older one is shown */
  int fd;
  const char *prompt;
} Edit;

static int edit_is_tail(char c) {
  return ((unsigned char)c & 0xc0) == 0x80;
}

/* Approximate columns of the character at p: East Asian characters and emoji are wide. */
static int edit_columns(const char *p, size_t n) {
  const unsigned char *u = (const unsigned char *)p;
  unsigned long ch = u[0];
  if (u[0] >= 0xf0 && n > 3)
    ch = (u[0] & 7ul) << 18 | (u[1] & 63ul) << 12 | (u[2] & 63ul) << 6 | (u[3] & 63ul);
  else if (u[0] >= 0xe0 && n > 2)
    ch = (u[0] & 15ul) << 12 | (u[1] & 63ul) << 6 | (u[2] & 63ul);
  else if (u[0] >= 0xc0 && n > 1)
    ch = (u[0] & 31ul) << 6 | (u[1] & 63ul);
  if ((ch >= 0x300 && ch < 0x370) || ch == 0x200d || (ch >= 0xfe00 && ch < 0xfe10)) return 0;
  return (ch >= 0x1100 && ch < 0x1160) || (ch >= 0x2e80 && ch < 0xa4d0) ||
                 (ch >= 0xac00 && ch < 0xd7a4) || (ch >= 0xf900 && ch < 0xfb00) ||
                 (ch >= 0xff00 && ch < 0xff61) || ch >= 0x1f300
             ? 2
             : 1;
}

static size_t edit_next(const Edit *e, size_t at) {
  if (at < e->n) at++;
  while (at < e->n && edit_is_tail(e->line[at])) at++;
  return at;
}

static size_t edit_before(const Edit *e, size_t at) {
  if (at) at--;
  while (at && edit_is_tail(e->line[at])) at--;
  return at;
}

static int edit_width(const Edit *e, size_t from, size_t to) {
  int w = 0;
  for (size_t i = from; i < to; i = edit_next(e, i)) w += edit_columns(e->line + i, e->n - i);
  return w;
}

/* Shows the part of the line around the cursor that fits. */
static void edit_show(const Edit *e) {
  struct winsize size;
  int room = ioctl(e->fd, TIOCGWINSZ, &size) || size.ws_col < 20 ? 80 : size.ws_col;
  room -= (int)strlen(e->prompt) + 1;
  size_t from = 0, to;
  while (edit_width(e, from, e->at) >= room) from = edit_next(e, from);
  for (to = e->at; to < e->n && edit_width(e, from, edit_next(e, to)) <= room;)
    to = edit_next(e, to);
  printf("\r%s", e->prompt);
  fwrite(e->line + from, 1, to - from, stdout);
  printf("\x1b[K\r");
  int column = (int)strlen(e->prompt) + edit_width(e, from, e->at);
  if (column) printf("\x1b[%dC", column);
  fflush(stdout);
}

static void edit_put(Edit *e, const char *text, size_t n) {
  if (n >= EDIT_BYTES - e->n) return;
  memmove(e->line + e->at + n, e->line + e->at, e->n - e->at);
  memcpy(e->line + e->at, text, n);
  e->n += n;
  e->at += n;
}

static void edit_cut(Edit *e, size_t from, size_t to) {
  memmove(e->line + from, e->line + to, e->n - to);
  e->n -= to - from;
  e->at = from;
}

static void edit_set(Edit *e, const char *text) {
  e->n = e->at = 0;
  edit_put(e, text, strlen(text));
}

static void edit_browse(Edit *e, int older) {
  size_t oldest = e->npast > EDIT_LINES ? e->npast - EDIT_LINES : 0;
  if (older ? e->shown == oldest : e->shown == e->npast) return;
  if (e->shown == e->npast) {
    memcpy(e->draft, e->line, e->n);
    e->draft[e->n] = 0;
  }
  e->shown += older ? (size_t)-1 : 1;
  edit_set(e, e->shown == e->npast ? e->draft : e->past[e->shown % EDIT_LINES]);
}

static void edit_keep(Edit *e) {
  char **slot = &e->past[e->npast % EDIT_LINES];
  if (!e->n) return;
  if (e->npast && !strcmp(e->past[(e->npast - 1) % EDIT_LINES], e->line)) return;
  char *copy = malloc(e->n + 1);
  if (!copy) return;
  memcpy(copy, e->line, e->n + 1);
  free(*slot);
  *slot = copy;
  e->npast++;
}

static int edit_byte(const Edit *e) {
  unsigned char c;
  return read(e->fd, &c, 1) == 1 ? c : -1;
}

/* Inserts pasted text up to the end of the paste. */
static void edit_paste(Edit *e) {
  static const char end[] = "\x1b[201~";
  size_t seen = 0;
  for (int c; seen < sizeof end - 1 && (c = edit_byte(e)) >= 0;) {
    seen = c == end[seen] ? seen + 1 : c == end[0];
    char one = (char)(c == '\r' || c == '\n' || c == '\t' ? ' ' : c);
    if (!seen && (unsigned char)one >= 32) edit_put(e, &one, 1);
  }
}

static void edit_escape(Edit *e) {
  int c = edit_byte(e), number = 0;
  if (c != '[' && c != 'O') return;
  while ((c = edit_byte(e)) >= '0' && c <= '9') number = number * 10 % 1000 + c - '0';
  while (c == ';' || (c >= '0' && c <= '9')) c = edit_byte(e); /* ignore Shift and Ctrl */
  if (c == '~') c = number == 1 || number == 7 ? 'H' : number == 4 || number == 8 ? 'F' : c;
  if (c == 'A' || c == 'B') edit_browse(e, c == 'A');
  if (c == 'C') e->at = edit_next(e, e->at);
  if (c == 'D') e->at = edit_before(e, e->at);
  if (c == 'H') e->at = 0;
  if (c == 'F') e->at = e->n;
  if (c == '~' && number == 3) edit_cut(e, e->at, edit_next(e, e->at));
  if (c == '~' && number == 200) edit_paste(e);
}

static size_t edit_word(const Edit *e) {
  size_t at = e->at;
  while (at && e->line[at - 1] == ' ') at--;
  while (at && e->line[at - 1] != ' ') at--;
  return at;
}

static void edit_key(Edit *e, int c) {
  char one = (char)c;
  switch (c) {
  case 27: edit_escape(e); break;
  case 1: e->at = 0; break;
  case 5: e->at = e->n; break;
  case 2: e->at = edit_before(e, e->at); break;
  case 6: e->at = edit_next(e, e->at); break;
  case 8:
  case 127: edit_cut(e, edit_before(e, e->at), e->at); break;
  case 4: edit_cut(e, e->at, edit_next(e, e->at)); break;
  case 11: e->n = e->at; break;
  case 21: edit_cut(e, 0, e->at); break;
  case 23: edit_cut(e, edit_word(e), e->at); break;
  case 14:
  case 16: edit_browse(e, c == 16); break;
  case 12: fputs("\x1b[H\x1b[2J", stdout); break;
  default:
    if (c >= 32) edit_put(e, &one, 1);
  }
}

static char *edit_terminal(Edit *e) {
  struct termios old, raw;
  int c;
  if (tcgetattr(e->fd, &old)) return NULL;
  raw = old;
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
  raw.c_iflag &= ~(tcflag_t)(ICRNL | IXON);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  tcsetattr(e->fd, TCSADRAIN, &raw);
  fputs("\x1b[?2004h", stdout);
  edit_show(e);
  while ((c = edit_byte(e)) >= 0 && c != '\r' && c != '\n' && !(c == 4 && !e->n)) {
    if (c == 3) {
      fputs("^C\n", stdout);
      e->n = e->at = 0;
    } else {
      edit_key(e, c);
    }
    edit_show(e);
  }
  fputs("\x1b[?2004l\r\n", stdout);
  fflush(stdout);
  tcsetattr(e->fd, TCSADRAIN, &old);
  e->line[e->n] = 0;
  return c < 0 || c == 4 ? NULL : e->line;
}

/* Skips a line that is too long, with a message. */
static char *edit_plain(Edit *e) {
  while (fgets(e->line, EDIT_BYTES, stdin)) {
    size_t n = strlen(e->line);
    if (n + 1 < EDIT_BYTES || e->line[n - 1] == '\n') {
      e->line[strcspn(e->line, "\r\n")] = 0;
      return e->line;
    }
    for (int c = getchar(); c != EOF && c != '\n';) c = getchar();
    fprintf(stderr, "a line of more than %d bytes was skipped\n", EDIT_BYTES - 2);
  }
  return NULL;
}

/* The next line without its newline, in memory of e; NULL at the end. */
static char *edit_line(Edit *e, const char *prompt) {
  const char *kind = getenv("TERM");
  if (!e->line) e->line = malloc(EDIT_BYTES);
  if (!e->draft) e->draft = malloc(EDIT_BYTES);
  if (!e->line || !e->draft) return NULL;
  e->n = e->at = 0;
  e->fd = 0;
  e->prompt = prompt;
  e->shown = e->npast;
  if (!isatty(0) || !isatty(1) || !kind || !strcmp(kind, "dumb")) {
    if (isatty(0)) fputs(prompt, stdout), fflush(stdout);
    return edit_plain(e);
  }
  char *line = edit_terminal(e);
  if (line) edit_keep(e);
  return line;
}

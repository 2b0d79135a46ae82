/* http.c: see http.h.
 *
 * libevent is found with dlopen, so that neither building nor other commands need it. evhttp parses
 * requests and writes answers. This file adds what evhttp 2.1 lacks: a limit of connections (the
 * listener pauses), a deadline for a whole request (evhttp has one per read), and notice of clients
 * that leave while no answer is being written. For the first two, every connection has a record
 * with a reference to its bufferevent. evhttp has freed a bufferevent whose event callback is NULL.
 */
#include "driver/serve/http.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>

struct bufferevent;
struct event_base;
struct evhttp_connection;
struct evhttp_request;

typedef void EventFn(int fd, short what, void *user);
typedef void BufferFn(struct bufferevent *b, void *user);
typedef void BufferEventFn(struct bufferevent *b, short what, void *user);
typedef void RequestFn(struct evhttp_request *r, void *user);
typedef void CloseFn(struct evhttp_connection *k, void *user);
typedef struct bufferevent *NewBufferFn(struct event_base *b, void *user);

/* Values of libevent's headers. */
enum { EVLOOP_ONCE = 1, EVLOOP_NONBLOCK = 2, EV_READ = 2, EV_SIGNAL = 8, EV_PERSIST = 16 };
enum { BEV_OPT_CLOSE_ON_FREE = 1, BEV_EVENT_READING = 1, BEV_EVENT_EOF = 16 };
enum { EVHTTP_REQ_GET = 1, EVHTTP_REQ_POST = 2 };

#define FUNCTIONS(F)                                                                               \
  F(struct event_base *, event_base_new, (void))                                                   \
  F(void, event_base_free, (struct event_base *))                                                  \
  F(int, event_base_loop, (struct event_base *, int))                                              \
  F(struct event *, event_new, (struct event_base *, int, short, EventFn *, void *))               \
  F(int, event_add, (struct event *, const struct timeval *))                                      \
  F(void, event_free, (struct event *))                                                            \
  F(struct evhttp *, evhttp_new, (struct event_base *))                                            \
  F(void, evhttp_free, (struct evhttp *))                                                          \
  F(struct evhttp_bound_socket *, evhttp_bind_socket_with_handle,                                  \
    (struct evhttp *, const char *, u16))                                                          \
  F(int, evhttp_bound_socket_get_fd, (struct evhttp_bound_socket *))                               \
  F(struct evconnlistener *, evhttp_bound_socket_get_listener, (struct evhttp_bound_socket *))     \
  F(int, evconnlistener_disable, (struct evconnlistener *))                                        \
  F(int, evconnlistener_enable, (struct evconnlistener *))                                         \
  F(void, evhttp_del_accept_socket, (struct evhttp *, struct evhttp_bound_socket *))               \
  F(void, evhttp_set_gencb, (struct evhttp *, RequestFn *, void *))                                \
  F(void, evhttp_set_bevcb, (struct evhttp *, NewBufferFn *, void *))                              \
  F(void, evhttp_set_max_headers_size, (struct evhttp *, ssize_t))                                 \
  F(void, evhttp_set_max_body_size, (struct evhttp *, ssize_t))                                    \
  F(void, evhttp_set_timeout, (struct evhttp *, int))                                              \
  F(int, evhttp_request_get_command, (const struct evhttp_request *))                              \
  F(const char *, evhttp_request_get_uri, (const struct evhttp_request *))                         \
  F(struct evkeyvalq *, evhttp_request_get_input_headers, (struct evhttp_request *))               \
  F(struct evkeyvalq *, evhttp_request_get_output_headers, (struct evhttp_request *))              \
  F(struct evbuffer *, evhttp_request_get_input_buffer, (struct evhttp_request *))                 \
  F(struct evhttp_connection *, evhttp_request_get_connection, (struct evhttp_request *))          \
  F(const char *, evhttp_find_header, (const struct evkeyvalq *, const char *))                    \
  F(int, evhttp_add_header, (struct evkeyvalq *, const char *, const char *))                      \
  F(void, evhttp_send_reply, (struct evhttp_request *, int, const char *, struct evbuffer *))      \
  F(void, evhttp_send_reply_start, (struct evhttp_request *, int, const char *))                   \
  F(void, evhttp_send_reply_chunk, (struct evhttp_request *, struct evbuffer *))                   \
  F(void, evhttp_send_reply_end, (struct evhttp_request *))                                        \
  F(void, evhttp_connection_set_closecb, (struct evhttp_connection *, CloseFn *, void *))          \
  F(struct bufferevent *, evhttp_connection_get_bufferevent, (struct evhttp_connection *))         \
  F(void, evhttp_connection_get_peer, (struct evhttp_connection *, char **, u16 *))                \
  F(struct evbuffer *, evbuffer_new, (void))                                                       \
  F(void, evbuffer_free, (struct evbuffer *))                                                      \
  F(int, evbuffer_add, (struct evbuffer *, const void *, size_t))                                  \
  F(size_t, evbuffer_get_length, (const struct evbuffer *))                                        \
  F(int, evbuffer_remove, (struct evbuffer *, void *, size_t))                                     \
  F(struct bufferevent *, bufferevent_socket_new, (struct event_base *, int, int))                 \
  F(struct evbuffer *, bufferevent_get_output, (struct bufferevent *))                             \
  F(void, bufferevent_getcb,                                                                       \
    (struct bufferevent *, BufferFn **, BufferFn **, BufferEventFn **, void **))                   \
  F(void, bufferevent_setcb,                                                                       \
    (struct bufferevent *, BufferFn *, BufferFn *, BufferEventFn *, void *))                       \
  F(int, bufferevent_enable, (struct bufferevent *, short))                                        \
  F(int, bufferevent_set_timeouts,                                                                 \
    (struct bufferevent *, const struct timeval *, const struct timeval *))                        \
  F(void, bufferevent_setwatermark, (struct bufferevent *, short, size_t, size_t))                 \
  F(void, bufferevent_incref, (struct bufferevent *))                                              \
  F(int, bufferevent_decref, (struct bufferevent *))                                               \
  F(void, bufferevent_trigger_event, (struct bufferevent *, short, int))

typedef struct Libevent {
#define F(type, name, args) type(*name) args;
  FUNCTIONS(F)
#undef F
} Libevent;

static const char *const names[] = {
#define F(type, name, args) #name,
    FUNCTIONS(F)
#undef F
};

typedef struct Connection {
  struct bufferevent *b;
  double since; /* milliseconds: begin of the connection, or end of the last answer */
  bool busy;    /* an answer is pending, or not sent completely */
  bool ending;  /* the answer is complete; its bytes are being sent */
} Connection;

enum { SIGNALS = 2, READ_AHEAD = 1 << 18 };

struct Http {
  Ctx *c;
  HttpOptions o;
  Libevent f;
  struct event_base *base;
  struct evhttp *server;
  struct evhttp_bound_socket *socket; /* NULL: closed */
  struct event *tick, *signal[SIGNALS];
  Connection *open; /* room for o.connections */
  u32 nopen, port, signals;
  sigset_t mask; /* signal mask of the caller */
  bool paused, masked;
};

/* ---- loading ---- */

static void load(Http *h) {
  static const char *const files[] = {"libevent-2.1.so.7", "libevent.so", "libevent-2.2.so.1"};
  void *lib = NULL;
  for (u32 i = 0; i < sizeof files / sizeof *files && !lib; i++)
    lib = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
  if (!lib)
    fail(h->c, ERR_unsupported, LOC_NONE,
         "the server needs libevent 2.1: install libevent (Debian package libevent-dev)");
  for (u32 i = 0; i < sizeof names / sizeof *names; i++) {
    void *at = dlsym(lib, names[i]);
    if (!at)
      fail(h->c, ERR_unsupported, LOC_NONE,
           "libevent has no function %s: install libevent 2.1 (Debian package libevent-dev)",
           names[i]);
    memcpy((char *)&h->f + i * sizeof(void *), &at, sizeof at);
  }
}

/* ---- connections ---- */

static bool is_live(const Http *h, struct bufferevent *b) {
  BufferFn *read, *write;
  BufferEventFn *event = NULL;
  void *user;
  h->f.bufferevent_getcb(b, &read, &write, &event, &user);
  return event != NULL;
}

static struct timeval seconds(u32 n) {
  return (struct timeval){.tv_sec = n};
}

static void pause_accepting(Http *h, bool pause) {
  if (!h->socket || h->paused == pause) return;
  struct evconnlistener *l = h->f.evhttp_bound_socket_get_listener(h->socket);
  if (pause)
    h->f.evconnlistener_disable(l);
  else
    h->f.evconnlistener_enable(l);
  h->paused = pause;
}

static bool is_flushed(const Http *h, const Connection *k) {
  return !h->f.evbuffer_get_length(h->f.bufferevent_get_output(k->b));
}

/* Busy: the client need not send anything. Otherwise its next request must arrive in time. */
static void set_busy(Http *h, Connection *k, bool busy) {
  struct timeval read = seconds(h->o.request_seconds), write = seconds(h->o.write_seconds);
  k->busy = busy;
  k->ending = false;
  k->since = time_ms();
  h->f.bufferevent_set_timeouts(k->b, busy ? NULL : &read, &write);
}

/* Drops the records of closed connections, and closes those whose request takes too long. An answer
 * that is being sent has only the limit on writes. */
static void sweep(Http *h) {
  double now = time_ms(), most = 1e3 * h->o.request_seconds;
  for (u32 i = h->nopen; i-- > 0;) {
    Connection *k = &h->open[i];
    if (is_live(h, k->b) && k->ending && is_flushed(h, k)) set_busy(h, k, false);
    if (is_live(h, k->b) && !k->busy && now - k->since > most)
      h->f.bufferevent_trigger_event(k->b, BEV_EVENT_READING | BEV_EVENT_EOF, 0);
    if (is_live(h, k->b)) continue;
    h->f.bufferevent_decref(k->b);
    h->open[i] = h->open[--h->nopen];
  }
  pause_accepting(h, h->nopen >= h->o.connections);
}

static void on_tick(int fd, short what, void *user) {
  (void)fd, (void)what;
  sweep(user);
}

/* evhttp takes a body with a length from the buffer when all of it has arrived. */
static void limit_input(Http *h, struct bufferevent *b) {
  h->f.bufferevent_setwatermark(b, EV_READ, 0, (size_t)(h->o.header_bytes + h->o.body_bytes));
}

static struct bufferevent *on_connect(struct event_base *base, void *user) {
  Http *h = user;
  struct bufferevent *b = h->f.bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  if (!b) return NULL;
  h->f.bufferevent_incref(b);
  limit_input(h, b);
  h->open[h->nopen++] = (Connection){.b = b, .since = time_ms()};
  pause_accepting(h, h->nopen >= h->o.connections);
  return b;
}

static Connection *connection_of(Http *h, struct evhttp_connection *k) {
  struct bufferevent *b = h->f.evhttp_connection_get_bufferevent(k);
  for (u32 i = 0; i < h->nopen; i++)
    if (h->open[i].b == b) return &h->open[i];
  return NULL;
}

/* Reads on without using the data, to notice that the client closes the connection. evhttp does the
 * same once it writes. */
static void watch_close(Http *h, struct evhttp_connection *k) {
  struct bufferevent *b = h->f.evhttp_connection_get_bufferevent(k);
  BufferFn *read, *write;
  BufferEventFn *event;
  void *user;
  h->f.bufferevent_getcb(b, &read, &write, &event, &user);
  h->f.bufferevent_setcb(b, NULL, write, event, user);
  h->f.bufferevent_setwatermark(b, EV_READ, 0, READ_AHEAD);
  h->f.bufferevent_enable(b, EV_READ);
}

static void on_close(struct evhttp_connection *k, void *user) {
  HttpRequest *r = user;
  (void)k;
  r->gone = true;
}

/* ---- requests ---- */

static const char *header(HttpRequest *r, const char *name) {
  const Libevent *f = &r->http->f;
  const char *v = f->evhttp_find_header(f->evhttp_request_get_input_headers(r->own), name);
  return v ? str_text(r->c, str_of(r->c, v)) : NULL;
}

typedef struct Arrival {
  HttpRequest first, *kept; /* kept: in the memory of the request */
} Arrival;

static void read_request(Ctx *c, void *arg) {
  Arrival *x = arg;
  HttpRequest *r = &x->first;
  const Libevent *f = &r->http->f;
  const char *uri = f->evhttp_request_get_uri(r->own);
  int command = f->evhttp_request_get_command(r->own);
  struct evbuffer *in = f->evhttp_request_get_input_buffer(r->own);
  r->method = command == EVHTTP_REQ_GET ? "GET" : command == EVHTTP_REQ_POST ? "POST" : "";
  r->path = str_text(c, str_intern(c, uri ? uri : "", uri ? strcspn(uri, "?#") : 0));
  r->nbody = f->evbuffer_get_length(in);
  char *body = arena_alloc(&c->keep, r->nbody + 1);
  if (r->nbody) f->evbuffer_remove(in, body, r->nbody);
  r->body = body;
  const char *key = header(r, "Authorization");
  if (key && !strncasecmp(key, "Bearer ", 7)) r->key = key + 7;
  if (!r->key) r->key = header(r, "X-Api-Key");
  r->host = header(r, "Host");
  r->origin = header(r, "Origin");
  x->kept = arena_copy(&c->keep, r, sizeof *r);
}

static void on_request(struct evhttp_request *own, void *user) {
  Http *h = user;
  struct evhttp_connection *k = h->f.evhttp_request_get_connection(own);
  Ctx *c = ctx_new(&h->c->alloc, NULL);
  Arrival x = {.first = {.http = h, .c = c, .own = own, .start = time_ms()}};
  char *peer = NULL;
  u16 port;
  h->f.evhttp_connection_get_peer(k, &peer, &port);
  if (peer) x.first.client = hash_bytes(peer, strlen(peer));
  if (!c || ctx_protect(c, read_request, &x)) {
    ctx_free(c);
    h->f.evhttp_send_reply(own, 503, "out of memory", NULL);
    return;
  }
  Connection *open = connection_of(h, k);
  if (open) set_busy(h, open, true);
  watch_close(h, k);
  h->f.evhttp_connection_set_closecb(k, on_close, x.kept);
  h->o.handle(h->o.user, x.kept);
}

static const char *reason(int status) {
  static const struct {
    int status;
    const char *text;
  } rows[] = {{200, "OK"},
              {400, "Bad Request"},
              {401, "Unauthorized"},
              {403, "Forbidden"},
              {404, "Not Found"},
              {405, "Method Not Allowed"},
              {429, "Too Many Requests"},
              {503, "Service Unavailable"}};
  for (u32 i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].status == status) return rows[i].text;
  return "Internal Server Error";
}

static void put_header(HttpRequest *r, const char *name, const char *value) {
  const Libevent *f = &r->http->f;
  f->evhttp_add_header(f->evhttp_request_get_output_headers(r->own), name, value);
}

static void put_headers(HttpRequest *r, const char *type) {
  put_header(r, "Content-Type", type);
  put_header(r, "Cache-Control", "no-store");
  put_header(r, "X-Content-Type-Options", "nosniff");
}

/* The answer is complete. Once it is sent, the connection waits for its next request. */
static void release(HttpRequest *r) {
  Http *h = r->http;
  struct evhttp_connection *k = r->gone ? NULL : h->f.evhttp_request_get_connection(r->own);
  if (!k) return;
  h->f.evhttp_connection_set_closecb(k, NULL, NULL);
  Connection *open = connection_of(h, k);
  if (!open) return;
  open->ending = true;
  limit_input(h, open->b);
}

static struct evbuffer *buffer_of(HttpRequest *r, const void *at, size_t n) {
  const Libevent *f = &r->http->f;
  struct evbuffer *b = f->evbuffer_new();
  if (b && n) f->evbuffer_add(b, at, n);
  return b;
}

void http_reply(HttpRequest *r, int status, const char *type, const void *at, size_t n, u32 retry) {
  const Libevent *f = &r->http->f;
  struct evbuffer *b = buffer_of(r, at, n);
  release(r);
  put_headers(r, type);
  if (retry) {
    char text[16];
    snprintf(text, sizeof text, "%u", retry);
    put_header(r, "Retry-After", text);
  }
  if (status == 401) put_header(r, "WWW-Authenticate", "Bearer");
  f->evhttp_send_reply(r->own, status, reason(status), b);
  if (b) f->evbuffer_free(b);
  ctx_free(r->c);
}

void http_begin(HttpRequest *r, const char *type) {
  put_headers(r, type);
  put_header(r, "X-Accel-Buffering", "no"); /* nginx passes every piece on at once */
  r->begun = true;
  if (!r->gone) r->http->f.evhttp_send_reply_start(r->own, 200, reason(200));
}

void http_put(HttpRequest *r, const void *at, size_t n) {
  if (r->gone || !n) return;
  struct evbuffer *b = buffer_of(r, at, n);
  if (!b) return;
  r->http->f.evhttp_send_reply_chunk(r->own, b);
  r->http->f.evbuffer_free(b);
}

void http_end(HttpRequest *r) {
  const Libevent *f = &r->http->f;
  release(r);
  f->evhttp_send_reply_end(r->own);
  ctx_free(r->c);
}

void http_fail(HttpRequest *r) {
  static const char text[] =
      "{\"error\":{\"message\":\"the server failed on this request\",\"type\":"
      "\"server_error\",\"param\":null,\"code\":500}}\n";
  if (!r->begun) {
    http_reply(r, 500, "application/json", text, sizeof text - 1, 0);
    return;
  }
  const Libevent *f = &r->http->f;
  struct evhttp_connection *k = r->gone ? NULL : f->evhttp_request_get_connection(r->own);
  if (k)
    f->bufferevent_trigger_event(f->evhttp_connection_get_bufferevent(k),
                                 BEV_EVENT_READING | BEV_EVENT_EOF, 0);
  http_end(r);
}

/* ---- server ---- */

bool http_is_loopback(const char *host) {
  struct in_addr four;
  struct in6_addr six;
  if (inet_pton(AF_INET, host, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, host, &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return !strcasecmp(host, "localhost");
}

static void on_signal(int fd, short what, void *user) {
  (void)fd, (void)what;
  ((Http *)user)->signals++;
}

static u32 port_of(int fd) {
  struct sockaddr_storage a;
  socklen_t n = sizeof a;
  memset(&a, 0, sizeof a);
  if (getsockname(fd, (struct sockaddr *)&a, &n)) return 0;
  return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                       : ((struct sockaddr_in *)&a)->sin_port);
}

Http *http_open(Ctx *c, const HttpOptions *o) {
  Http *h = NEW(&c->keep, Http);
  struct timeval second = seconds(1);
  h->c = c;
  h->o = *o;
  h->open = NEWS(&c->keep, Connection, o->connections);
  load(h);
  h->base = h->f.event_base_new();
  h->server = h->base ? h->f.evhttp_new(h->base) : NULL;
  if (!h->server) fail(c, ERR_system, LOC_NONE, "libevent cannot create an event loop");
  h->f.evhttp_set_gencb(h->server, on_request, h);
  h->f.evhttp_set_bevcb(h->server, on_connect, h);
  h->f.evhttp_set_max_headers_size(h->server, (ssize_t)o->header_bytes);
  h->f.evhttp_set_max_body_size(h->server, (ssize_t)o->body_bytes);
  h->f.evhttp_set_timeout(h->server, (int)o->request_seconds);
  errno = 0;
  h->socket = h->f.evhttp_bind_socket_with_handle(h->server, o->host, (u16)o->port);
  if (!h->socket) {
    int why = errno;
    http_close(h);
    fail(c, ERR_system, LOC_NONE, "cannot listen on %s, port %u: %s", o->host, o->port,
         why ? strerror(why) : "not an address of this machine");
  }
  h->port = port_of(h->f.evhttp_bound_socket_get_fd(h->socket));
  h->tick = h->f.event_new(h->base, -1, EV_PERSIST, on_tick, h);
  if (h->tick) h->f.event_add(h->tick, &second);
  return h;
}

/* In this thread: a client that leaves must not end the process (SIGPIPE), and the signals that end
 * the server must arrive, even if the caller has blocked them. */
void http_watch_signals(Http *h) {
  static const int signals[SIGNALS] = {SIGTERM, SIGINT};
  sigset_t block, unblock;
  sigemptyset(&block);
  sigemptyset(&unblock);
  sigaddset(&block, SIGPIPE);
  for (u32 i = 0; i < SIGNALS; i++) {
    h->signal[i] = h->f.event_new(h->base, signals[i], EV_SIGNAL | EV_PERSIST, on_signal, h);
    if (h->signal[i]) h->f.event_add(h->signal[i], NULL);
    sigaddset(&unblock, signals[i]);
  }
  pthread_sigmask(SIG_BLOCK, &block, &h->mask);
  pthread_sigmask(SIG_UNBLOCK, &unblock, NULL);
  h->masked = true;
}

u32 http_port(const Http *h) {
  return h->port;
}

void http_poll(Http *h, bool wait) {
  h->f.event_base_loop(h->base, wait ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
  if (h->paused) sweep(h);
}

u32 http_signals(const Http *h) {
  return h->signals;
}

void http_stop_accepting(Http *h) {
  if (h->socket) h->f.evhttp_del_accept_socket(h->server, h->socket);
  h->socket = NULL;
}

bool http_is_sent(const Http *h) {
  for (u32 i = 0; i < h->nopen; i++)
    if (is_live(h, h->open[i].b) && !is_flushed(h, &h->open[i])) return false;
  return true;
}

u32 http_connections(const Http *h) {
  u32 n = 0;
  for (u32 i = 0; i < h->nopen; i++) n += is_live(h, h->open[i].b);
  return n;
}

void http_close(Http *h) {
  if (h->masked) pthread_sigmask(SIG_SETMASK, &h->mask, NULL);
  for (u32 i = 0; i < SIGNALS; i++)
    if (h->signal[i]) h->f.event_free(h->signal[i]);
  if (h->tick) h->f.event_free(h->tick);
  h->f.evhttp_free(h->server);
  for (u32 i = 0; i < h->nopen; i++) h->f.bufferevent_decref(h->open[i].b);
  h->f.event_base_free(h->base);
}

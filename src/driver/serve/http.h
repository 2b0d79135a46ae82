/* http.h: an HTTP/1.1 server on libevent (evhttp), which is loaded when the server starts.
 *
 * One thread: requests arrive inside http_poll. A request stays open until http_reply or http_end;
 * the caller may answer later, and asks http_gone whether the client has left.
 */
#ifndef INGOT_HTTP_H
#define INGOT_HTTP_H

#include "base/base.h"

typedef struct Http Http;
typedef struct HttpRequest HttpRequest;
typedef struct HttpOptions HttpOptions;

struct HttpOptions {
  const char *host;
  u32 port;        /* 0: any free one */
  u32 connections; /* accepted at once; others wait in the backlog of the system */
  u64 header_bytes, body_bytes;
  u32 request_seconds; /* to receive a request, also until the next one on a connection */
  u32 write_seconds;   /* without progress while an answer is sent */
  void (*handle)(void *user, HttpRequest *r);
  void *user;
};

struct HttpRequest {
  Http *http;
  Ctx *c;             /* memory of the request; freed by http_reply and http_end */
  const char *method; /* "GET", "POST", or "" for others */
  const char *path;   /* without query */
  const char *body;
  size_t nbody;
  const char *key;           /* bearer token; NULL: none */
  const char *host, *origin; /* headers; NULL: absent */
  u64 client;                /* hash of the address of the peer */
  double start;              /* milliseconds */
  bool begun, gone;          /* gone: the client has left */
  bool failed;               /* for the caller: it will call http_fail */
  void *job;                 /* data of the caller */
  struct evhttp_request *own;
};

/* Is it localhost, or an address that only this machine reaches? */
bool http_is_loopback(const char *host);
Http *http_open(Ctx *c, const HttpOptions *o); /* ERR_unsupported: libevent is missing */
void http_watch_signals(Http *h);              /* from now on SIGTERM and SIGINT are counted */
u32 http_port(const Http *h);
void http_poll(Http *h, bool wait); /* handles events; wait: sleep until there are some */
u32 http_signals(const Http *h);    /* SIGTERM and SIGINT so far */
void http_stop_accepting(Http *h);
bool http_is_sent(const Http *h); /* has every answer left this process? */
u32 http_connections(const Http *h);
void http_close(Http *h);

/* Answers and frees r. retry: seconds of Retry-After; 0: none. */
void http_reply(HttpRequest *r, int status, const char *type, const void *at, size_t n, u32 retry);
/* An answer in pieces: server-sent events. */
void http_begin(HttpRequest *r, const char *type);
void http_put(HttpRequest *r, const void *at, size_t n);
void http_end(HttpRequest *r);
/* A request without an answer: status 500, or if it has begun, the connection is closed. Frees r
 * and needs no memory of it. */
void http_fail(HttpRequest *r);

#endif

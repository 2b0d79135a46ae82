/* jinja_value.c: values of templates: strings with marks, comparison, output. */
#include "chat/jinja_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- constructors ---- */

JinjaVal jinja_string(Arena *a, const char *at, size_t n, bool marked) {
  u8 *mark = marked && n ? arena_alloc(a, n) : NULL;
  if (mark) memset(mark, 1, n);
  return (JinjaVal){.kind = JK_string,
                    .s = {.at = arena_copy(a, n ? at : "", n), .mark = mark, .n = (u32)n}};
}

JinjaVal jinja_plain(const char *s) {
  return (JinjaVal){.kind = JK_string, .s = {.at = s, .n = (u32)strlen(s)}};
}

JinjaVal jinja_int(i64 i) {
  return (JinjaVal){.kind = JK_int, .i = i};
}

JinjaVal jinja_bool(bool b) {
  return (JinjaVal){.kind = JK_bool, .i = b};
}

JinjaVal jinja_dict(Arena *a) {
  return (JinjaVal){.kind = JK_dict, .dict = NEW(a, JinjaDict)};
}

JinjaVal jinja_list(Arena *a) {
  return (JinjaVal){.kind = JK_list, .list = NEW(a, JinjaList)};
}

void jinja_add(Arena *a, JinjaVal list, JinjaVal v) {
  *vec_push(a, &list.list->v) = v;
}

void jinja_set(Arena *a, JinjaVal dict, const char *key, JinjaVal v) {
  *vec_push(a, &dict.dict->v) = (JinjaPair){jinja_plain(key), v};
}

void jinja_charge_memory(Jinja *j, u64 bytes) {
  j->bytes += bytes;
  if (j->bytes > JINJA_BYTES) jinja_fail(j, ERR_input, "the template needs too much memory");
}

void jinja_step(Jinja *j) {
  if (++j->steps > JINJA_STEPS) jinja_fail(j, ERR_input, "the template takes too many steps");
}

void jinja_charge_bytes(Jinja *j, u64 bytes) {
  j->scanned += bytes;
  if (j->scanned > JINJA_MAX_SCANNED) jinja_fail(j, ERR_input, "the template takes too many steps");
}

/* The first push reserves eight elements (vec_grow). */
void jinja_push(Jinja *j, JinjaVal list, JinjaVal v) {
  jinja_charge_memory(j, (list.list->v.n ? 1 : 8) * sizeof v);
  jinja_add(j->a, list, v);
}

bool str_equal(JinjaStr a, const char *b) {
  return a.n == strlen(b) && !memcmp(a.at, b, a.n);
}

JinjaStr str_part(JinjaStr s, u32 from, u32 to) {
  return (JinjaStr){s.at + from, s.mark ? s.mark + from : NULL, to - from, s.safe};
}

u32 str_chars(Jinja *j, JinjaStr s) {
  u32 n = 0;
  jinja_charge_bytes(j, s.n);
  for (u32 i = 0; i < s.n; i++) n += ((u8)s.at[i] & 0xc0) != 0x80;
  return n;
}

/* Compares by hand, to count only the bytes that match. */
bool str_at(Jinja *j, JinjaStr s, u32 i, JinjaStr what) {
  u32 k = 0;
  bool fits = s.n - i >= what.n;
  while (fits && k < what.n && s.at[i + k] == what.at[k]) k++;
  jinja_charge_bytes(j, (u64)k + 1);
  return fits && k == what.n;
}

JinjaOut out_new(Jinja *j) {
  return (JinjaOut){j, sb_new(j->a), sb_new(j->a)};
}

void out_str(JinjaOut *o, JinjaStr s) {
  static const u8 none[64];
  jinja_charge_memory(o->j, 2 * (u64)s.n);
  sb_put(&o->text, s.at, s.n);
  if (s.mark) {
    sb_put(&o->mark, s.mark, s.n);
    return;
  }
  for (u32 i = 0; i < s.n; i += sizeof none)
    sb_put(&o->mark, none, s.n - i < sizeof none ? s.n - i : sizeof none);
}

void out_plain(JinjaOut *o, const char *s) {
  out_str(o, jinja_plain(s).s);
}

JinjaVal out_end(JinjaOut *o) {
  return (JinjaVal){.kind = JK_string,
                    .s = {.at = o->text.n ? o->text.at : "",
                          .mark = o->text.n ? (const u8 *)o->mark.at : NULL,
                          .n = (u32)o->text.n}};
}

/* Shortest digits that read back, as repr() of Python. */
static void out_float(JinjaOut *o, double f) {
  char b[64];
  for (int digits = 1; digits <= 17; digits++) {
    jinja_step(o->j);
    snprintf(b, sizeof b, "%.*g", digits, f);
    if (strtod(b, NULL) == f) break;
  }
  double size = f < 0 ? -f : f;
  if (size >= 1e-4 && size < 1e16 && strchr(b, 'e')) snprintf(b, sizeof b, "%.0f", f);
  if (f != f) snprintf(b, sizeof b, "nan");
  out_plain(o, b);
  if (!strpbrk(b, ".eni")) out_plain(o, ".0");
}

/* Quoted as in repr(). */
static void out_quoted(JinjaOut *o, JinjaStr s) {
  bool one = s.n && memchr(s.at, '\'', s.n) && !memchr(s.at, '"', s.n);
  const char *quote = one ? "\"" : "'";
  out_plain(o, quote);
  for (u32 i = 0; i < s.n; i++) {
    u8 ch = (u8)s.at[i];
    char b[8] = {0};
    if (ch == '\\' || ch == (u8)*quote)
      b[0] = '\\', b[1] = (char)ch;
    else if (ch == '\n' || ch == '\r' || ch == '\t')
      b[0] = '\\', b[1] = ch == '\n' ? 'n' : ch == '\r' ? 'r' : 't';
    else if (ch < 32 || ch == 127)
      snprintf(b, sizeof b, "\\x%02x", ch);
    if (*b) {
      JinjaVal v = jinja_string(o->j->a, b, strlen(b), s.mark && s.mark[i]);
      out_str(o, v.s);
    } else {
      out_str(o, str_part(s, i, i + 1));
    }
  }
  out_plain(o, quote);
}

static void out_repr(JinjaOut *o, JinjaVal v) {
  if (++o->j->depth > JINJA_DEPTH) jinja_fail(o->j, ERR_input, "values nested too deeply");
  if (v.kind == JK_string) {
    out_quoted(o, v.s);
  } else if (v.kind == JK_list || v.kind == JK_tuple) {
    out_plain(o, v.kind == JK_list ? "[" : "(");
    for (u32 i = 0; i < v.list->v.n; i++) {
      if (i) out_plain(o, ", ");
      out_repr(o, v.list->v.at[i]);
    }
    out_plain(o, v.kind == JK_list ? "]" : v.list->v.n == 1 ? ",)" : ")");
  } else if (v.kind == JK_dict) {
    out_plain(o, "{");
    for (u32 i = 0; i < v.dict->v.n; i++) {
      if (i) out_plain(o, ", ");
      out_repr(o, v.dict->v.at[i].key);
      out_plain(o, ": ");
      out_repr(o, v.dict->v.at[i].value);
    }
    out_plain(o, "}");
  } else {
    out_value(o, v);
  }
  o->j->depth--;
}

void out_value(JinjaOut *o, JinjaVal v) {
  char b[32];
  switch (v.kind) {
  case JK_undefined: break;
  case JK_none: out_plain(o, "None"); break;
  case JK_bool: out_plain(o, v.i ? "True" : "False"); break;
  case JK_int:
    snprintf(b, sizeof b, "%lld", (long long)v.i);
    out_plain(o, b);
    break;
  case JK_float: out_float(o, v.f); break;
  case JK_string: out_str(o, v.s); break;
  case JK_list:
  case JK_tuple:
  case JK_dict: out_repr(o, v); break;
  case JK_space:
  case JK_macro:
  case JK_function:
    jinja_fail(o->j, ERR_unsupported, "a namespace, macro or function cannot be printed");
  }
}

JinjaVal text_of(Jinja *j, JinjaVal v) {
  if (v.kind == JK_string) return v;
  JinjaOut o = out_new(j);
  out_value(&o, v);
  return out_end(&o);
}

JinjaStr jinja_escape(Jinja *j, JinjaStr s) {
  static const char from[] = "&<>'\"";
  static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  JinjaOut o = out_new(j);
  for (u32 i = 0; i < s.n; i++) {
    const char *found = s.at[i] ? strchr(from, s.at[i]) : NULL;
    if (found)
      out_str(
          &o,
          jinja_string(j->a, to[found - from], strlen(to[found - from]), s.mark && s.mark[i]).s);
    else
      out_str(&o, str_part(s, i, i + 1));
  }
  return out_end(&o).s;
}

/* ---- comparing ---- */

bool jinja_is_true(JinjaVal v) {
  switch (v.kind) {
  case JK_undefined:
  case JK_none: return false;
  case JK_bool:
  case JK_int: return v.i != 0;
  case JK_float: return v.f != 0;
  case JK_string: return v.s.n > 0;
  case JK_list:
  case JK_tuple: return v.list->v.n > 0;
  case JK_dict: return v.dict->v.n > 0;
  default: return true;
  }
}

bool jinja_is_number(JinjaVal v) {
  return v.kind == JK_bool || v.kind == JK_int || v.kind == JK_float;
}

static double number(JinjaVal v) {
  return v.kind == JK_float ? v.f : (double)v.i;
}

static int compare_lists(Jinja *j, const JinjaList *a, const JinjaList *b, bool *ordered) {
  for (u32 i = 0; i < a->v.n && i < b->v.n; i++) {
    int d = jinja_compare(j, a->v.at[i], b->v.at[i], ordered);
    if (d) return d;
  }
  return a->v.n < b->v.n ? -1 : a->v.n > b->v.n;
}

int jinja_compare(Jinja *j, JinjaVal a, JinjaVal b, bool *ordered) {
  int d = 1;
  if (++j->depth > JINJA_DEPTH) jinja_fail(j, ERR_input, "values nested too deeply");
  jinja_step(j);
  *ordered = true;
  if (jinja_is_number(a) && jinja_is_number(b)) {
    d = a.kind != JK_float && b.kind != JK_float ? (a.i < b.i ? -1 : a.i > b.i)
        : number(a) < number(b)                  ? -1
                                                 : number(a) > number(b);
  } else if (a.kind == JK_string && b.kind == JK_string) {
    u32 n = a.s.n < b.s.n ? a.s.n : b.s.n;
    jinja_charge_bytes(j, n);
    d = memcmp(a.s.at, b.s.at, n);
    if (!d) d = a.s.n < b.s.n ? -1 : a.s.n > b.s.n;
  } else if (a.kind == b.kind && (a.kind == JK_list || a.kind == JK_tuple)) {
    d = compare_lists(j, a.list, b.list, ordered);
  } else {
    *ordered = false;
    if (a.kind == b.kind && a.kind == JK_dict) {
      d = a.dict->v.n != b.dict->v.n;
      for (u32 i = 0; i < a.dict->v.n && !d; i++) {
        const JinjaVal *v = dict_find(j, b.dict, a.dict->v.at[i].key);
        d = !v || !jinja_equal(j, *v, a.dict->v.at[i].value);
      }
    } else if (a.kind == b.kind && a.kind <= JK_none) {
      d = 0;
    } else if (a.kind == b.kind && a.kind == JK_space) {
      d = a.dict != b.dict;
    }
  }
  j->depth--;
  return d;
}

bool jinja_equal(Jinja *j, JinjaVal a, JinjaVal b) {
  bool ordered;
  return jinja_compare(j, a, b, &ordered) == 0;
}

const JinjaVal *dict_find(Jinja *j, const JinjaDict *d, JinjaVal key) {
  for (u32 i = 0; i < d->v.n; i++)
    if (jinja_equal(j, d->v.at[i].key, key)) return &d->v.at[i].value;
  return NULL;
}

void dict_put(Jinja *j, JinjaDict *d, JinjaVal key, JinjaVal v) {
  const JinjaVal *old = dict_find(j, d, key);
  jinja_charge_memory(j, sizeof(JinjaPair));
  if (old)
    d->v.at[(const JinjaPair *)(const void *)((const char *)old - offsetof(JinjaPair, value)) -
            d->v.at]
        .value = v;
  else
    *vec_push(j->a, &d->v) = (JinjaPair){key, v};
}

JinjaVal jinja_items(Jinja *j, JinjaVal v) {
  if (v.kind == JK_list || v.kind == JK_tuple) return v;
  JinjaVal list = jinja_list(j->a);
  if (v.kind == JK_undefined) return list;
  if (v.kind == JK_dict) {
    for (u32 i = 0; i < v.dict->v.n; i++) jinja_push(j, list, v.dict->v.at[i].key);
  } else if (v.kind == JK_string) {
    for (u32 i = 0, k; i < v.s.n; i = k) {
      for (k = i + 1; k < v.s.n && ((u8)v.s.at[k] & 0xc0) == 0x80;) k++;
      jinja_push(j, list, (JinjaVal){.kind = JK_string, .s = str_part(v.s, i, k)});
    }
  } else {
    jinja_fail(j, ERR_input, "the value is not iterable");
  }
  return list;
}

JinjaVal jinja_attr(Jinja *j, JinjaVal v, JinjaVal key) {
  const JinjaVal none = {.kind = JK_undefined};
  if (v.kind == JK_dict || v.kind == JK_space) {
    const JinjaVal *found = dict_find(j, v.dict, key);
    return found ? *found : none;
  }
  bool index = key.kind == JK_int || key.kind == JK_bool;
  JinjaVal list = v;
  if (v.kind == JK_string && index) list = jinja_items(j, v);
  if ((v.kind == JK_list || v.kind == JK_tuple || v.kind == JK_string) && index) {
    i64 i = key.i < 0 ? key.i + list.list->v.n : key.i;
    return i >= 0 && i < list.list->v.n ? list.list->v.at[i] : none;
  }
  if (v.kind == JK_undefined) jinja_fail(j, ERR_input, "an undefined value has no members");
  return none;
}

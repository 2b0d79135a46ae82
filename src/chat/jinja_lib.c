/* jinja_lib.c: tables of filters, tests, methods and functions for templates. */
#include "chat/jinja_internal.h"
#include "tokenizer/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef JinjaVal LibFn(Jinja *j, JinjaVal v, const JinjaArgs *args);
typedef struct LibRow {
  const char *name;
  LibFn *fn;
} LibRow;

enum { BY_NAME = JINJA_ARGS }; /* keyword-only argument */

static const JinjaVal nothing = {.kind = JK_undefined};

static JinjaVal arg(Jinja *j, const JinjaArgs *args, u32 i, const char *name, JinjaVal otherwise) {
  if (i < JINJA_ARGS && i < args->n) return args->at[i];
  for (u32 k = 0; name && k < args->nnamed; k++)
    if (str_equal(args->name[k].s, name)) return args->named[k];
  (void)j;
  return otherwise;
}

static JinjaStr need_text(Jinja *j, JinjaVal v) {
  if (v.kind != JK_string) jinja_fail(j, ERR_input, "expected a string");
  return v.s;
}

static JinjaVal str(JinjaStr s) {
  return (JinjaVal){.kind = JK_string, .s = s};
}

/* Length of the character at p if it is in the set, else 0. Without a set: white space. */
static u32 in_set(Jinja *j, const char *p, size_t n, const JinjaStr *set) {
  u32 length, ch = utf8_get((const u8 *)p, n, &length);
  jinja_charge_bytes(j, set ? set->n : 1);
  if (!set) return char_is_space(ch) || (ch >= 28 && ch <= 31) ? length : 0;
  for (u32 i = 0; i + length <= set->n; i++)
    if (!memcmp(set->at + i, p, length)) return length;
  return 0;
}

static u32 char_before(JinjaStr s, u32 to) {
  u32 from = to - 1;
  while (from && ((u8)s.at[from] & 0xc0) == 0x80) from--;
  return from;
}

static JinjaStr strip(Jinja *j, JinjaStr s, const JinjaStr *set, bool left, bool right) {
  u32 from = 0, to = s.n;
  for (u32 n; left && from < to && (n = in_set(j, s.at + from, to - from, set));) from += n;
  for (u32 k;
       right && to > from && (k = char_before(s, to)) >= from && in_set(j, s.at + k, to - k, set);)
    to = k;
  return str_part(s, from, to);
}

static JinjaVal strip_by(Jinja *j, JinjaVal v, const JinjaArgs *args, bool left, bool right) {
  JinjaVal set = arg(j, args, 0, "chars", nothing);
  JinjaStr chars = set.kind == JK_string ? set.s : (JinjaStr){0};
  return str(strip(j, need_text(j, v), set.kind == JK_string ? &chars : NULL, left, right));
}

static JinjaVal m_strip(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return strip_by(j, v, args, true, true);
}

static JinjaVal m_lstrip(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return strip_by(j, v, args, true, false);
}

static JinjaVal m_rstrip(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return strip_by(j, v, args, false, true);
}

/* Case conversion of ASCII letters; other letters with case are refused. */
typedef struct CaseRule {
  bool upper, first_only, words;
  bool ascii; /* keep others unchanged */
} CaseRule;

static JinjaVal change_case(Jinja *j, JinjaVal v, CaseRule r) {
  JinjaStr s = text_of(j, v).s;
  char *copy = arena_copy(j->a, s.n ? s.at : "", s.n);
  bool begin = true;
  jinja_charge_memory(j, s.n);
  for (u32 i = 0; i < s.n; i++) {
    bool up = r.first_only ? begin : r.upper;
    if ((u8)copy[i] >= 128 && !r.ascii)
      jinja_fail(j, ERR_unsupported, "upper and lower case are supported for ASCII only");
    bool letter = (copy[i] | 32) >= 'a' && (copy[i] | 32) <= 'z';
    if (letter) copy[i] = (char)(up ? copy[i] & ~32 : copy[i] | 32);
    begin = r.words && !letter;
  }
  return str((JinjaStr){copy, s.mark, s.n, s.safe});
}

static JinjaVal f_upper(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  (void)args;
  return change_case(j, v, (CaseRule){.upper = true});
}

static JinjaVal f_lower(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  (void)args;
  return change_case(j, v, (CaseRule){.upper = false});
}

static JinjaVal f_capitalize(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  (void)args;
  return change_case(j, v, (CaseRule){.first_only = true});
}

static JinjaVal f_title(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  (void)args;
  return change_case(j, v, (CaseRule){.first_only = true, .words = true});
}

static JinjaVal m_replace(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaStr s = text_of(j, v).s, from = need_text(j, arg(j, args, 0, "old", nothing)),
           to = need_text(j, arg(j, args, 1, "new", nothing));
  JinjaVal most = arg(j, args, 2, "count", jinja_int(-1));
  i64 left = most.kind == JK_int && most.i >= 0 ? most.i : INT64_MAX;
  JinjaOut o = out_new(j);
  if (!from.n) jinja_fail(j, ERR_unsupported, "replace needs a nonempty string to search for");
  for (u32 i = 0; i < s.n;) {
    if (left > 0 && str_at(j, s, i, from)) {
      out_str(&o, to);
      i += from.n;
      left--;
    } else {
      out_str(&o, str_part(s, i, i + 1));
      i++;
    }
  }
  return out_end(&o);
}

static JinjaVal m_split(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaStr s = need_text(j, v);
  JinjaVal by = arg(j, args, 0, "sep", nothing), most = arg(j, args, 1, "maxsplit", jinja_int(-1));
  i64 left = most.kind == JK_int && most.i >= 0 ? most.i : INT64_MAX;
  JinjaVal list = jinja_list(j->a);
  bool spaces = by.kind != JK_string;
  if (!spaces && !by.s.n) jinja_fail(j, ERR_input, "split needs a nonempty separator");
  u32 from = 0, i = 0;
  while (i < s.n) {
    u32 cut = spaces ? in_set(j, s.at + i, s.n - i, NULL) : str_at(j, s, i, by.s) ? by.s.n : 0;
    if (!cut || left == 0) {
      i++;
      continue;
    }
    if (!spaces || i > from) {
      jinja_push(j, list, str(str_part(s, from, i)));
      left--;
    }
    i += cut;
    from = i;
    for (u32 k;
         spaces && left == 0 && from < s.n && (k = in_set(j, s.at + from, s.n - from, NULL));)
      from += k;
    i = i < from ? from : i;
  }
  JinjaStr rest = str_part(s, from, s.n);
  if (!spaces || rest.n) jinja_push(j, list, str(rest));
  return list;
}

static bool at_end(Jinja *j, JinjaStr s, JinjaVal what, bool front) {
  if (what.kind == JK_tuple) {
    for (u32 i = 0; i < what.list->v.n; i++)
      if (at_end(j, s, str(need_text(j, what.list->v.at[i])), front)) return true;
    return false;
  }
  JinjaStr w = need_text(j, what);
  jinja_step(j);
  return w.n <= s.n && str_at(j, s, front ? 0 : s.n - w.n, w);
}

static JinjaVal m_startswith(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return jinja_bool(at_end(j, need_text(j, v), arg(j, args, 0, NULL, nothing), true));
}

static JinjaVal m_endswith(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return jinja_bool(at_end(j, need_text(j, v), arg(j, args, 0, NULL, nothing), false));
}

/* str.format with fields {}, {0} and {name}. */
static JinjaVal m_format(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaStr s = need_text(j, v);
  JinjaOut o = out_new(j);
  u32 next = 0;
  for (u32 i = 0; i < s.n; i++) {
    bool brace = s.at[i] == '{' || s.at[i] == '}';
    if (!brace || (i + 1 < s.n && s.at[i + 1] == s.at[i])) {
      out_str(&o, str_part(s, i, i + 1));
      i += brace;
      continue;
    }
    u32 from = i + 1;
    while (i < s.n && s.at[i] != '}' && s.at[i] != ':' && s.at[i] != '!') i++;
    if (i == s.n || s.at[i] != '}' || s.at[from - 1] == '}')
      jinja_fail(j, ERR_unsupported, "format supports only fields {}, {0} and {name}");
    JinjaVal name = str(str_part(s, from, i)), value = nothing;
    u32 at = name.s.n ? 0 : next++;
    bool digits = true;
    for (u32 k = 0; k < name.s.n && digits && at < JINJA_ARGS; k++) {
      digits = name.s.at[k] >= '0' && name.s.at[k] <= '9';
      at = at * 10 + (u32)(name.s.at[k] - '0');
    }
    bool given = digits && at < args->n;
    if (given) value = args->at[at];
    for (u32 k = 0; k < args->nnamed && !given && !digits; k++)
      if (jinja_equal(j, args->name[k], name)) value = args->named[k], given = true;
    if (!given) jinja_fail(j, ERR_input, "format: an argument is missing");
    out_value(&o, value);
  }
  return out_end(&o);
}

static JinjaVal f_indent(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaStr s = text_of(j, v).s;
  JinjaVal width = arg(j, args, 0, "width", jinja_int(4));
  bool first = jinja_is_true(arg(j, args, 1, "first", jinja_bool(false)));
  bool blank = jinja_is_true(arg(j, args, 2, "blank", jinja_bool(false)));
  JinjaOut o = out_new(j);
  for (u32 i = 0; i < s.n; i++) {
    bool begins = i == 0 ? first : s.at[i - 1] == '\n' && (blank || s.at[i] != '\n');
    for (i64 k = 0; begins && k < (width.kind == JK_int ? width.i : 0); k++) out_plain(&o, " ");
    if (begins && width.kind == JK_string) out_str(&o, width.s);
    out_str(&o, str_part(s, i, i + 1));
  }
  return out_end(&o);
}

static JinjaVal m_join(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal list = jinja_items(j, arg(j, args, 0, NULL, nothing));
  JinjaOut o = out_new(j);
  for (u32 i = 0; i < list.list->v.n; i++) {
    jinja_step(j);
    if (i) out_str(&o, need_text(j, v));
    out_str(&o, need_text(j, list.list->v.at[i]));
  }
  return out_end(&o);
}

static void json_string(JinjaOut *o, JinjaStr s) {
  static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
  out_plain(o, "\"");
  for (u32 i = 0; i < s.n; i++) {
    char b[8] = {0};
    const char *known = s.at[i] ? strchr(from, s.at[i]) : NULL;
    if (known)
      b[0] = '\\', b[1] = to[known - from];
    else if ((u8)s.at[i] < 32)
      snprintf(b, sizeof b, "\\u%04x", (u8)s.at[i]);
    if (*b)
      out_str(o, jinja_string(o->j->a, b, strlen(b), s.mark && s.mark[i]).s);
    else
      out_str(o, str_part(s, i, i + 1));
  }
  out_plain(o, "\"");
}

static void json_line(JinjaOut *o, i64 indent, u32 depth) {
  if (indent < 0) return;
  out_plain(o, "\n");
  for (i64 i = 0; i < indent * depth; i++) out_plain(o, " ");
}

static void json(JinjaOut *o, JinjaVal v, i64 indent, u32 depth) {
  bool dict = v.kind == JK_dict, list = v.kind == JK_list || v.kind == JK_tuple;
  u32 n = dict ? v.dict->v.n : list ? v.list->v.n : 0;
  if (depth > JINJA_DEPTH) jinja_fail(o->j, ERR_input, "values nested too deeply");
  if (!dict && !list) {
    if (v.kind == JK_string)
      json_string(o, v.s);
    else if (v.kind == JK_none)
      out_plain(o, "null");
    else if (v.kind == JK_bool)
      out_plain(o, v.i ? "true" : "false");
    else if (v.kind == JK_int || v.kind == JK_float)
      out_value(o, v);
    else
      jinja_fail(o->j, ERR_input, "tojson cannot represent this value");
    return;
  }
  out_plain(o, dict ? "{" : "[");
  for (u32 i = 0; i < n; i++) {
    if (i) out_plain(o, indent < 0 ? ", " : ",");
    json_line(o, indent, depth + 1);
    if (dict) {
      json_string(o, text_of(o->j, v.dict->v.at[i].key).s);
      out_plain(o, ": ");
    }
    json(o, dict ? v.dict->v.at[i].value : v.list->v.at[i], indent, depth + 1);
  }
  if (n) json_line(o, indent, depth);
  out_plain(o, dict ? "}" : "]");
}

static JinjaVal f_tojson(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal indent = arg(j, args, 0, "indent", nothing);
  for (u32 i = 0; i < args->nnamed; i++)
    if (!str_equal(args->name[i].s, "indent") && !str_equal(args->name[i].s, "ensure_ascii"))
      jinja_fail(j, ERR_unsupported, "tojson supports only the arguments indent and ensure_ascii");
  JinjaOut o = out_new(j);
  json(&o, v, indent.kind == JK_int && indent.i < 64 ? indent.i : -1, 0);
  return out_end(&o);
}

/* ---- lists and dicts ---- */

static JinjaVal f_length(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  (void)args;
  if (v.kind == JK_string) return jinja_int(str_chars(j, v.s));
  if (v.kind == JK_dict) return jinja_int(v.dict->v.n);
  return jinja_int(jinja_items(j, v).list->v.n);
}

static JinjaVal f_default(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  bool empty = jinja_is_true(arg(j, args, 1, "boolean", jinja_bool(false)));
  bool use = v.kind == JK_undefined || (empty && !jinja_is_true(v));
  return use ? arg(j, args, 0, "default_value", jinja_plain("")) : v;
}

/* a.b.c of v */
static JinjaVal member(Jinja *j, JinjaVal v, JinjaVal path) {
  if (path.kind != JK_string) return jinja_attr(j, v, path);
  jinja_charge_bytes(j, path.s.n);
  for (u32 i = 0, k; i <= path.s.n; i = k + 1) {
    for (k = i; k < path.s.n && path.s.at[k] != '.';) k++;
    v = v.kind == JK_undefined ? v : jinja_attr(j, v, str(str_part(path.s, i, k)));
  }
  return v;
}

static JinjaVal f_join(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal list = jinja_items(j, v), by = arg(j, args, 0, "d", jinja_plain(""));
  JinjaVal attribute = arg(j, args, 1, "attribute", nothing);
  JinjaOut o = out_new(j);
  for (u32 i = 0; i < list.list->v.n; i++) {
    JinjaVal x = list.list->v.at[i];
    jinja_step(j);
    if (i) out_value(&o, by);
    out_value(&o, attribute.kind == JK_undefined ? x : member(j, x, attribute));
  }
  return out_end(&o);
}

static JinjaVal pair(Jinja *j, JinjaVal a, JinjaVal b) {
  JinjaVal t = jinja_list(j->a);
  t.kind = JK_tuple;
  jinja_push(j, t, a);
  jinja_push(j, t, b);
  return t;
}

static JinjaVal m_items(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal list = jinja_list(j->a);
  (void)args;
  if (v.kind == JK_undefined) return list;
  if (v.kind != JK_dict) jinja_fail(j, ERR_input, "items needs a mapping");
  for (u32 i = 0; i < v.dict->v.n; i++)
    jinja_push(j, list, pair(j, v.dict->v.at[i].key, v.dict->v.at[i].value));
  return list;
}

static JinjaVal m_keys(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  (void)args;
  return jinja_items(j, v);
}

static JinjaVal m_values(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal list = jinja_list(j->a);
  (void)args;
  for (u32 i = 0; i < v.dict->v.n; i++) jinja_push(j, list, v.dict->v.at[i].value);
  return list;
}

static JinjaVal m_get(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  const JinjaVal *found = dict_find(j, v.dict, arg(j, args, 0, NULL, nothing));
  return found ? *found : arg(j, args, 1, NULL, (JinjaVal){.kind = JK_none});
}

static JinjaVal m_append(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  jinja_push(j, v, arg(j, args, 0, NULL, nothing));
  return (JinjaVal){.kind = JK_none};
}

static JinjaVal m_pop(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal at = arg(j, args, 0, NULL, jinja_int(-1)), out;
  u32 n = v.list->v.n;
  i64 i = at.kind == JK_int ? at.i + (at.i < 0 ? n : 0) : -1;
  if (i < 0 || i >= n) jinja_fail(j, ERR_input, "pop: the index is out of range");
  out = v.list->v.at[i];
  jinja_charge_bytes(j, (n - 1 - (size_t)i) * sizeof out);
  memmove(&v.list->v.at[i], &v.list->v.at[i + 1], (n - 1 - (size_t)i) * sizeof out);
  v.list->v.n--;
  return out;
}

static JinjaVal m_pop_key(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal key = arg(j, args, 0, NULL, nothing);
  for (u32 i = 0; i < v.dict->v.n; i++) {
    if (!jinja_equal(j, v.dict->v.at[i].key, key)) continue;
    JinjaVal out = v.dict->v.at[i].value;
    jinja_charge_bytes(j, (v.dict->v.n - 1 - (size_t)i) * sizeof(JinjaPair));
    memmove(&v.dict->v.at[i], &v.dict->v.at[i + 1],
            (v.dict->v.n - 1 - (size_t)i) * sizeof(JinjaPair));
    v.dict->v.n--;
    return out;
  }
  if (args->n < 2) jinja_fail(j, ERR_input, "pop: the key does not exist");
  return args->at[1];
}

static JinjaVal f_list(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal from = jinja_items(j, v), list = jinja_list(j->a);
  (void)args;
  for (u32 i = 0; i < from.list->v.n; i++) jinja_push(j, list, from.list->v.at[i]);
  return list;
}

static JinjaVal f_reverse(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal from = jinja_items(j, v), list = jinja_list(j->a);
  JinjaOut o = out_new(j);
  (void)args;
  for (u32 i = from.list->v.n; i-- > 0;) {
    if (v.kind == JK_string)
      out_str(&o, from.list->v.at[i].s);
    else
      jinja_push(j, list, from.list->v.at[i]);
  }
  return v.kind == JK_string ? out_end(&o) : list;
}

static JinjaVal f_first(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal list = jinja_items(j, v);
  (void)args;
  return list.list->v.n ? list.list->v.at[0] : nothing;
}

static JinjaVal f_last(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal list = jinja_items(j, v);
  (void)args;
  return list.list->v.n ? list.list->v.at[list.list->v.n - 1] : nothing;
}

/* Key of sort, min, max, unique and dictsort: by default, the case of strings is ignored. */
static JinjaVal sort_key(Jinja *j, JinjaVal v, const JinjaArgs *args, u32 attribute_place) {
  JinjaVal attribute = arg(j, args, attribute_place, "attribute", nothing);
  bool exact = jinja_is_true(arg(j, args, BY_NAME, "case_sensitive", jinja_bool(false)));
  if (attribute.kind != JK_undefined) v = member(j, v, attribute);
  return v.kind == JK_string && !exact ? change_case(j, v, (CaseRule){.ascii = true}) : v;
}

static bool precedes(Jinja *j, JinjaVal a, JinjaVal b) {
  bool ordered;
  int d = jinja_compare(j, a, b, &ordered);
  if (!ordered) jinja_fail(j, ERR_input, "values of these kinds cannot be sorted");
  return d < 0;
}

/* Stable insertion sort; its steps are counted and limited. */
static JinjaVal sorted(Jinja *j, JinjaVal list, const JinjaArgs *args, u32 place, bool by_first,
                       bool down) {
  JinjaVal out = f_list(j, list, args), keys = jinja_list(j->a);
  for (u32 i = 0; i < out.list->v.n; i++) {
    JinjaVal x = out.list->v.at[i], key = sort_key(j, by_first ? x.list->v.at[0] : x, args, place);
    u32 k = i;
    jinja_push(j, keys, key);
    for (;
         k && precedes(j, down ? keys.list->v.at[k - 1] : key, down ? key : keys.list->v.at[k - 1]);
         k--) {
      keys.list->v.at[k] = keys.list->v.at[k - 1];
      out.list->v.at[k] = out.list->v.at[k - 1];
    }
    keys.list->v.at[k] = key;
    out.list->v.at[k] = x;
  }
  return out;
}

static JinjaVal f_sort(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return sorted(j, v, args, 2, false, jinja_is_true(arg(j, args, 0, "reverse", jinja_bool(false))));
}

static JinjaVal f_dictsort(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaArgs none = {.n = 0};
  return sorted(j, m_items(j, v, args), &none, BY_NAME, true,
                jinja_is_true(arg(j, args, 2, "reverse", jinja_bool(false))));
}

static JinjaVal extreme(Jinja *j, JinjaVal v, const JinjaArgs *args, bool least) {
  JinjaVal list = sorted(j, v, args, 1, false, !least);
  return list.list->v.n ? list.list->v.at[0] : nothing;
}

static JinjaVal f_min(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return extreme(j, v, args, true);
}

static JinjaVal f_max(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return extreme(j, v, args, false);
}

static JinjaVal f_unique(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal from = jinja_items(j, v), out = jinja_list(j->a), keys = jinja_list(j->a);
  for (u32 i = 0; i < from.list->v.n; i++) {
    JinjaVal key = sort_key(j, from.list->v.at[i], args, 1);
    bool known = false;
    for (u32 k = 0; k < keys.list->v.n && !known; k++)
      known = jinja_equal(j, keys.list->v.at[k], key);
    if (known) continue;
    jinja_push(j, keys, key);
    jinja_push(j, out, from.list->v.at[i]);
  }
  return out;
}

/* Elements that a filter iterates over; empty for every false value. */
static JinjaVal items_if_true(Jinja *j, JinjaVal v) {
  return jinja_is_true(v) ? jinja_items(j, v) : jinja_list(j->a);
}

/* select, reject, selectattr, rejectattr: elements by a test on them or on an attribute. */
static JinjaVal chosen(Jinja *j, JinjaVal v, const JinjaArgs *args, bool of_member, bool keep) {
  JinjaVal from = items_if_true(j, v), out = jinja_list(j->a);
  JinjaArgs rest = {.n = 0};
  u32 test = of_member ? 1 : 0;
  for (u32 i = test + 1; i < args->n; i++) rest.at[rest.n++] = args->at[i];
  for (u32 i = 0; i < from.list->v.n; i++) {
    JinjaVal x = from.list->v.at[i];
    JinjaVal of = of_member ? member(j, x, arg(j, args, 0, NULL, nothing)) : x;
    jinja_step(j);
    bool holds = args->n > test ? jinja_test(j, args->at[test], of, &rest) : jinja_is_true(of);
    if (holds == keep) jinja_push(j, out, x);
  }
  return out;
}

static JinjaVal f_select(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return chosen(j, v, args, false, true);
}

static JinjaVal f_reject(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return chosen(j, v, args, false, false);
}

static JinjaVal f_selectattr(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return chosen(j, v, args, true, true);
}

static JinjaVal f_rejectattr(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return chosen(j, v, args, true, false);
}

static JinjaVal f_map(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  JinjaVal from = items_if_true(j, v), out = jinja_list(j->a);
  JinjaVal attribute = arg(j, args, BY_NAME, "attribute", nothing),
           otherwise = arg(j, args, BY_NAME, "default", nothing);
  JinjaArgs rest = {.n = 0};
  if (attribute.kind == JK_undefined && !args->n) jinja_fail(j, ERR_input, "map needs a filter");
  for (u32 i = 1; i < args->n; i++) rest.at[rest.n++] = args->at[i];
  for (u32 i = 0; i < from.list->v.n; i++) {
    JinjaVal x = from.list->v.at[i];
    if (attribute.kind == JK_undefined) {
      x = jinja_filter(j, args->at[0], x, &rest);
    } else {
      x = member(j, x, attribute);
      if (x.kind == JK_undefined) x = otherwise;
    }
    jinja_push(j, out, x);
  }
  return out;
}

static JinjaVal f_string(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  (void)args;
  return text_of(j, v);
}

static JinjaVal f_safe(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  (void)args;
  v = text_of(j, v);
  v.s.safe = true;
  return v;
}

static JinjaVal f_trim(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  return strip_by(j, text_of(j, v), args, true, true);
}

static JinjaVal f_int(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  if (v.kind == JK_int || v.kind == JK_bool) return jinja_int(v.i);
  if (v.kind == JK_float && v.f > -9e18 && v.f < 9e18) return jinja_int((i64)v.f);
  char b[64];
  if (v.kind == JK_string && v.s.n && v.s.n < sizeof b) {
    char *end;
    JinjaStr s = strip(j, v.s, NULL, true, true);
    memcpy(b, s.at, s.n);
    b[s.n] = 0;
    long long x = strtoll(b, &end, 10);
    if (s.n && !*end) return jinja_int(x);
    double f = strtod(b, &end);
    if (s.n && !*end && f > -9e18 && f < 9e18) return jinja_int((i64)f);
  }
  return arg(j, args, 0, "default", jinja_int(0));
}

static JinjaVal f_abs(Jinja *j, JinjaVal v, const JinjaArgs *args) {
  (void)args;
  if (v.kind == JK_float) return (JinjaVal){.kind = JK_float, .f = v.f < 0 ? -v.f : v.f};
  if (v.kind != JK_int) jinja_fail(j, ERR_input, "abs needs a number");
  return jinja_int(v.i < 0 && v.i != INT64_MIN ? -v.i : v.i);
}

static const LibRow *find(const LibRow *row, u32 n, JinjaVal name) {
  for (u32 i = 0; i < n && name.kind == JK_string; i++)
    if (str_equal(name.s, row[i].name)) return &row[i];
  return NULL;
}
#define FIND(rows, name) find(rows, sizeof(rows) / sizeof *(rows), name)

static const char *named(Jinja *j, JinjaVal name) {
  return name.kind == JK_string ? show(j->c, str_intern(j->c, name.s.at, name.s.n)) : "?";
}

static const LibRow filters[] = {
    {"tojson", f_tojson},
    {"length", f_length},
    {"count", f_length},
    {"trim", f_trim},
    {"string", f_string},
    {"default", f_default},
    {"d", f_default},
    {"join", f_join},
    {"items", m_items},
    {"list", f_list},
    {"selectattr", f_selectattr},
    {"rejectattr", f_rejectattr},
    {"select", f_select},
    {"reject", f_reject},
    {"safe", f_safe},
    {"dictsort", f_dictsort},
    {"lower", f_lower},
    {"upper", f_upper},
    {"map", f_map},
    {"replace", m_replace},
    {"indent", f_indent},
    {"int", f_int},
    {"unique", f_unique},
    {"sort", f_sort},
    {"min", f_min},
    {"max", f_max},
    {"first", f_first},
    {"last", f_last},
    {"reverse", f_reverse},
    {"capitalize", f_capitalize},
    {"title", f_title},
    {"abs", f_abs},
};

JinjaVal jinja_filter(Jinja *j, JinjaVal name, JinjaVal v, const JinjaArgs *args) {
  const LibRow *row = FIND(filters, name);
  if (!row) jinja_fail(j, ERR_unsupported, "filter '%s' is not supported", named(j, name));
  return row->fn(j, v, args);
}

bool jinja_test(Jinja *j, JinjaVal name, JinjaVal v, const JinjaArgs *args) {
  enum { ANY = 0xfff };
  static const struct {
    const char *name;
    u32 kinds; /* bits by JinjaKind */
  } kinds[] = {{"defined", ANY & ~(1u << JK_undefined)},
               {"undefined", 1u << JK_undefined},
               {"none", 1u << JK_none},
               {"string", 1u << JK_string},
               {"mapping", 1u << JK_dict},
               {"boolean", 1u << JK_bool},
               {"integer", 1u << JK_int},
               {"float", 1u << JK_float},
               {"callable", 1u << JK_macro | 1u << JK_function},
               {"number", 1u << JK_int | 1u << JK_float | 1u << JK_bool},
               {"iterable", 1u << JK_string | 1u << JK_list | 1u << JK_tuple | 1u << JK_dict |
                                1u << JK_undefined},
               {"sequence", 1u << JK_string | 1u << JK_list | 1u << JK_tuple | 1u << JK_dict |
                                1u << JK_undefined}};
  if (name.kind != JK_string) jinja_fail(j, ERR_input, "expected the name of a test");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (str_equal(name.s, kinds[i].name)) return kinds[i].kinds >> v.kind & 1;
  if (str_equal(name.s, "true") || str_equal(name.s, "false"))
    return v.kind == JK_bool && v.i == (name.s.at[0] == 't');
  JinjaVal with = arg(j, args, 0, NULL, nothing);
  if (str_equal(name.s, "equalto") || str_equal(name.s, "eq") || str_equal(name.s, "=="))
    return jinja_equal(j, v, with);
  if (str_equal(name.s, "ne") || str_equal(name.s, "!=")) return !jinja_equal(j, v, with);
  if (str_equal(name.s, "in") && with.kind != JK_string) {
    JinjaVal list = jinja_items(j, with);
    for (u32 i = 0; i < list.list->v.n; i++)
      if (jinja_equal(j, list.list->v.at[i], v)) return true;
    return false;
  }
  bool odd = str_equal(name.s, "odd"), even = str_equal(name.s, "even");
  if ((odd || even) && v.kind == JK_int) return (v.i % 2 != 0) == odd;
  if (str_equal(name.s, "divisibleby") && v.kind == JK_int && with.kind == JK_int && with.i &&
      with.i != -1)
    return v.i % with.i == 0;
  jinja_fail(j, ERR_unsupported, "test '%s' is not supported", named(j, name));
}

/* ---- methods and functions ---- */

static const LibRow of_strings[] = {
    {"split", m_split},           {"strip", m_strip},       {"lstrip", m_lstrip},
    {"rstrip", m_rstrip},         {"endswith", m_endswith}, {"startswith", m_startswith},
    {"replace", m_replace},       {"upper", f_upper},       {"lower", f_lower},
    {"capitalize", f_capitalize}, {"title", f_title},       {"join", m_join},
    {"format", m_format},
};
static const LibRow of_dicts[] = {
    {"items", m_items}, {"keys", m_keys}, {"values", m_values}, {"get", m_get}, {"pop", m_pop_key},
};
static const LibRow of_lists[] = {{"append", m_append}, {"pop", m_pop}};

bool jinja_method(Jinja *j, JinjaVal v, JinjaVal name, const JinjaArgs *args, JinjaVal *out) {
  const LibRow *row = v.kind == JK_string ? FIND(of_strings, name)
                      : v.kind == JK_dict ? FIND(of_dicts, name)
                      : v.kind == JK_list ? FIND(of_lists, name)
                                          : NULL;
  if (v.kind == JK_undefined)
    jinja_fail(j, ERR_input, "method '%s' is called on an undefined value", named(j, name));
  if (row) *out = row->fn(j, v, args);
  return row != NULL;
}

static JinjaVal make_range(Jinja *j, const JinjaArgs *args) {
  i64 x[3] = {0, 0, 1};
  for (u32 i = 0; i < args->n && i < 3; i++) {
    if (args->at[i].kind != JK_int) jinja_fail(j, ERR_input, "range needs integers");
    x[args->n == 1 ? 1 : i] = args->at[i].i;
  }
  if (!x[2] || !args->n) jinja_fail(j, ERR_input, "range needs an end and a nonzero step");
  JinjaVal list = jinja_list(j->a);
  for (i64 i = x[0]; x[2] > 0 ? i < x[1] : i > x[1];) {
    jinja_push(j, list, jinja_int(i));
    if (__builtin_add_overflow(i, x[2], &i)) break;
  }
  return list;
}

static JinjaVal today(Jinja *j, const JinjaArgs *args) {
  JinjaStr format = need_text(j, arg(j, args, 0, NULL, nothing));
  char f[128], b[256];
  struct tm tm;
  time_t now = j->now == JINJA_DATES ? 0 : (time_t)j->now;
  if (!format.n || format.n >= sizeof f || !gmtime_r(&now, &tm))
    jinja_fail(j, ERR_input, "expected a date format of 1 to 127 bytes");
  memcpy(f, format.at, format.n);
  f[format.n] = 0;
  if (j->now == JINJA_DATES) {
    b[0] = DATE_BEGIN;
    memcpy(b + 1, f, format.n);
    b[format.n + 1] = DATE_END;
    return jinja_string(j->a, b, format.n + 2, false);
  }
  size_t n = strftime(b, sizeof b, f, &tm);
  return jinja_string(j->a, b, n, false);
}

static JinjaVal raise_exception(Jinja *j, const JinjaArgs *args) {
  JinjaVal why = text_of(j, arg(j, args, 0, NULL, jinja_plain("no reason given")));
  jinja_fail(j, ERR_input, "%s", show_text(j->c, str_intern(j->c, why.s.at, why.s.n)));
}

static JinjaVal make_dict(Jinja *j, const JinjaArgs *args) {
  JinjaVal out = jinja_dict(j->a);
  for (u32 i = 0; args->n && args->at[0].kind == JK_dict && i < args->at[0].dict->v.n; i++)
    dict_put(j, out.dict, args->at[0].dict->v.at[i].key, args->at[0].dict->v.at[i].value);
  for (u32 i = 0; i < args->nnamed; i++) dict_put(j, out.dict, args->name[i], args->named[i]);
  return out;
}

static JinjaVal make_space(Jinja *j, const JinjaArgs *args) {
  JinjaVal out = make_dict(j, args);
  out.kind = JK_space;
  return out;
}

static const struct {
  const char *name;
  JinjaVal (*fn)(Jinja *j, const JinjaArgs *args);
} functions[] = {{"raise_exception", raise_exception},
                 {"namespace", make_space},
                 {"dict", make_dict},
                 {"range", make_range},
                 {"strftime_now", today}};

JinjaVal jinja_global(JinjaVal name) {
  for (i64 i = 0; i < (i64)(sizeof functions / sizeof *functions); i++)
    if (str_equal(name.s, functions[i].name)) return (JinjaVal){.kind = JK_function, .i = i};
  return nothing;
}

JinjaVal jinja_function(Jinja *j, JinjaVal f, const JinjaArgs *args) {
  return functions[f.i].fn(j, args);
}

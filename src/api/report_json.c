/* report_json.c: texts and numbers of a report.
 *
 * In: bytes of a model, which may be anything. Out: JSON that stands in an element of HTML, where
 * `</script>` would end it wherever it stands: so <, > and & are escaped too. Characters of UTF-8
 * stay what they are; other bytes are shown as \xHH.
 */
#include "api/report.h"

#include <math.h>
#include <string.h>

void page_text(Text *t, const char *before, const char *at, size_t n) {
  text_puts(t, before);
  text_puts(t, "\"");
  for (size_t i = 0, k; i < n; i += k) {
    u8 ch = (u8)at[i];
    k = ch < 0x80 ? 1 : utf8_bytes(at + i, n - i);
    if (!k) {
      text_fmt(t, "\\\\x%02x", ch);
      k = 1;
    } else if (k > 1) {
      text_put(t, at + i, k);
    } else if (ch < 0x20 || ch == 0x7f || strchr("\"\\<>&", ch)) {
      text_fmt(t, "\\u%04x", ch);
    } else {
      text_put(t, at + i, 1);
    }
  }
  text_puts(t, "\"");
}

void page_str(PageReport *r, const char *before, Str s) {
  page_text(&r->out, before, str_text(r->c, s), str_len(r->c, s));
}

void page_cstr(Text *t, const char *before, const char *s) {
  page_text(t, before, s ? s : "", s ? strlen(s) : 0);
}

void page_number(Text *t, const char *before, double x) {
  if (isfinite(x))
    text_fmt(t, "%s%.7g", before, x);
  else
    text_fmt(t, "%snull", before);
}

/* report_json.c: strings and numbers of the HTML report.
 *
 * In: arbitrary bytes of a model. Out: JSON that is safe inside an HTML element.
 */
#include "driver/report/report.h"

#include <math.h>
#include <string.h>

void page_text(StrBuf *t, const char *before, const char *at, size_t n) {
  sb_puts(t, before);
  sb_json_html(t, at, n);
}

void page_str(PageReport *r, const char *before, Str s) {
  page_text(&r->out, before, str_text(r->c, s), str_len(r->c, s));
}

void page_cstr(StrBuf *t, const char *before, const char *s) {
  page_text(t, before, s ? s : "", s ? strlen(s) : 0);
}

void page_number(StrBuf *t, const char *before, double x) {
  if (isfinite(x))
    sb_fmt(t, "%s%.7g", before, x);
  else
    sb_fmt(t, "%snull", before);
}

#include "back/vm/build.h"
bool panel_loop(Build *b, StmtId id) {
  (void)b;
  (void)id;
  return false;
}

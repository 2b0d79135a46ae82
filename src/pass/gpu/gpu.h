/* gpu.h: shared by the files of pass/gpu; private to them. */
#ifndef INGOT_PASS_GPU_H
#define INGOT_PASS_GPU_H

#include "pass/kernel/tile.h"

#endif

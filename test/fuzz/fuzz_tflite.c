/* TensorFlow Lite models through the whole compiler: see whole.h. */
#include "front/tflite/tflite.h"
#include "whole.h"

static const Whole whole_format = {lite_open, lite_import};

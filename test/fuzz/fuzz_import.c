/* ONNX models through the whole compiler: see whole.h. */
#include "front/onnx/onnx_reader.h"
#include "mutate.h"
#include "whole.h"

static const Whole whole_format = {onnx_open, onnx_import};

/* cost.h: closed-form cost estimates of alternatives.
 *
 * Passes use these before any code is generated. Generated statements are costed by stmt_time
 * (prog.h). The machine parameters are in target.def. */
#ifndef INGOT_COST_H
#define INGOT_COST_H

#include "ir/dim.h"
#include "ir/target.h"

/* An extent in estimates: a symbolic one is its upper bound, at most `limit`. */
i64 extent_upto(Dims *ds, Dim d, i64 limit);
/* Upper bound of an extent; without one, the default trip count of an unbounded loop. */
i64 extent_bound(Dims *ds, Dim d);

/* Cost of one step of an innermost reduction loop of `turns` iterations, in plain loads. row: each
 * step goes to the next accumulator; strides: operands read with a stride. */
double sum_step(double turns, bool row, u32 strides);

/* Cost of one reduction step of a register tile, in vector multiply-adds. */
double tile_step(const Costs *c, i64 rows, i64 panels);

/* A 3x3 convolution, costed in multiply-adds. */
typedef struct ConvWork {
  u32 m;             /* Winograd F(m x m); 0: direct */
  double in, out;    /* channels */
  double places;     /* output positions of all images; patches if m > 0 */
  double each_bytes; /* bytes per weight */
  double again;      /* Winograd: extra reads of the weights */
  bool dot_i16x2;    /* int16 products (dot_i16x2) */
} ConvWork;
double conv3x3_time(const Target *t, const ConvWork *w);

/* Memory traffic caused by splitting a loop between threads. */
typedef struct ThreadTraffic {
  double handed;  /* bytes a thread reads that other threads wrote */
  double alone;   /* bytes written by several threads, all transferred if one thread reads them */
  double weights; /* bytes of weights that every thread reads in full */
  double torn;    /* cache lines shared by two threads at chunk boundaries */
} ThreadTraffic;
/* Nanoseconds; times: extra reads of the weights. */
double traffic_time(const ThreadTraffic *r, double times);
double traffic_alone(const ThreadTraffic *r); /* if one thread runs the whole loop */

#endif

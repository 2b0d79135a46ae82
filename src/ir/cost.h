/* cost.h: what ways to compute the same are estimated to take, by closed forms.
 *
 * Passes ask these before anything is written; what is written is measured by stmt_time and its
 * like (prog.h), what a graph asks for by graph_macs and its like (graph.h). All are in cost.c, and
 * all numbers about machines are in target.def.
 */
#ifndef INGOT_COST_H
#define INGOT_COST_H

#include "ir/dim.h"
#include "ir/target.h"

/* An extent in estimates: an open one is its bound, but no more than `most`. */
i64 extent_upto(Dims *ds, Dim d, i64 most);
/* The same where bounds count in full: without one, what an open loop is taken for. */
i64 extent_bound(Dims *ds, Dim d);

/* A step of an innermost loop of so many turns over sums, in plain loads. row: it goes to the next
 * sum, else on in the same one; strides: operands that are not read one after the other. */
double sum_step(double turns, bool row, u32 strides);

/* A step of the fold of a tile of so many sums, in multiply-adds of vectors. */
double tile_step(const Costs *c, i64 rows, i64 panels);

/* A convolution 3x3 of so many channels and places, in multiply-adds. m: by Winograd's F(m x m) in
 * `patches`, whose weights are read so many times more; 0: as it stands. */
typedef struct ConvWork {
  u32 m;
  double in, out;    /* channels */
  double places;     /* of the result, of all images; patches where m */
  double each_bytes; /* of a weight */
  double again;
  bool dot2; /* products of numbers of 16 bits */
} ConvWork;
double conv3x3_time(const Target *t, const ConvWork *w);

/* What it costs in memory traffic to split a loop between threads. */
typedef struct ShareTraffic {
  double handed;  /* bytes a thread reads that others have written */
  double alone;   /* bytes that several threads have written: all of them, if one thread reads */
  double weights; /* bytes of weights that every thread reads whole */
  double torn;    /* cache lines that two threads write, at the ends of their parts */
} ShareTraffic;
double traffic_time(const ShareTraffic *r,
                    double times);           /* ns; weights are read so many times more */
double traffic_alone(const ShareTraffic *r); /* of one thread that runs all of it */

#endif

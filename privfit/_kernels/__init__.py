"""Compiled kernels: one step each, on memory that Python owns.

How a score is computed, from the outside in:

1. `privfit.records.packing` rounds records to int16 on the domain's grid and lays them out: dense
   records in panels of 16 rows, two columns to an int32; sparse ones as lists of ones and values.
2. `privfit.objectives` puts candidates on their grid, decides from public bounds whether results
   fit in 32 bits (else the *wide* functions work on whole numbers in double), allocates buffers and
   cuts the records into tiles.
3. A module here (`linear`, `smooth`, `centers`, `facility`) shares the tiles out among threads and
   calls tile functions. Each thread adds int64 sums to a row of its own.
4. The tile functions (`tiles.h`) are plain C, compiled for the baseline and for AVX2; `simd` picks
   one table of them at import.

All arithmetic on the way to a score is on integers, except for the two polynomials of the logistic
loss, which are evaluated in float32 without fused operations on an exact margin. So a record's
integer depends on that record and the candidate alone: not on its position, tile, thread, vector
lane or CPU. The same holds of what `smooth` adds: products in float64, each rounded to a whole
number. No kernel sees epsilon. Those that draw take a source of bits: `random` and `select`
exactly, for releases; `chain` with a fast generator, for what is public already.
"""

from privfit._kernels.builds import locate

# Of a clone whose kernels are not built in place: those of the installed privfit.
__path__[:] = dict.fromkeys([locate(), *__path__])

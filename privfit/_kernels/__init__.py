"""Compiled kernels: one step each, on memory that Python owns.

How a score is computed, from the outside in:

1. `privfit.records.packing` rounds records to int16 on the domain's grid and lays them out: dense
   records in panels of 16 rows, two columns to an int32; sparse ones as lists of ones and values.
2. `privfit.records` puts candidates on their grid, decides from public bounds whether results
   fit in 32 bits (else the *wide* functions work on whole numbers in double), allocates buffers and
   cuts the records into tiles.
3. A module here (`linear`, `smooth`, `centers`, `facility`) shares the tiles out among threads, in
   a loop over `prange`. Each thread adds int64 sums to a row of its own.
4. What happens to a tile stands in `.pxd` files named for what they compute (`margins`, `losses`,
   `gradients`, ...), as inline functions of typed Cython. `lanes.h` has the few instructions that
   no compiler finds by itself.

Modules with such loops are compiled for each instruction set, from one source; `cpu` says which of
them this process imports.

All arithmetic on the way to a score is on integers, except for the two polynomials of the logistic
loss, which are evaluated in float32 without fused operations on an exact margin. So a record's
integer depends on that record and the candidate alone: not on its position, tile, thread, vector
lane or CPU. The same holds of what `smooth` adds: products in float64, each rounded to a whole
number. No kernel sees epsilon. Those that draw take a source of bits: `random` and `select`
exactly, for releases; `chain` with a fast generator, for what is public already.
"""

from importlib import import_module
from pathlib import Path

from privfit._kernels.builds import locate
from privfit._kernels.waiting import found_spinning

# Of a clone whose kernels are not built in place: those of the installed privfit.
__path__[:] = dict.fromkeys([locate(), *__path__])

# The first module that is loaded brings OpenMP with it.
SPINNING = found_spinning(lambda: import_module("privfit._kernels.threads").has_openmp())

# Modules that were compiled for the instruction set of this CPU come first.
__path__.insert(0, str(Path(__path__[0], f"_{import_module('privfit._kernels.cpu').active()}")))

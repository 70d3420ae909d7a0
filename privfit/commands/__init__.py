"""The commands of `privfit`, one module each.

A command has the texts `HELP`, `EXAMPLE` and `DESCRIPTION`, ``add(parser)``, which declares its
options, and ``run(options, console)``, which does the work and raises `InputError` if it cannot.
Around them:

console.py     output to stdout and stderr, and the exit codes
arguments.py   numbers among the options, and their bounds
helping.py     help texts of one screen
files.py       files of many kinds: their columns, some rows at a time
tables.py      these as compact columns, as a schema declares them
schemafile.py  what a schema file declares
models.py      model files
spending.py    the budget of a run, and the split of its records
outputs.py     files that are written completely or not at all
pictures.py    the same for plots

The order of a run that spends budget: read the declarations, open the ledger, claim the files that
will be written, read the records, let the estimator check its plan; then charge, draw, write.
"""

from privfit.commands import budget, cluster, demo, fit, predict, report, roc, schema, show, sweep

__all__ = ["COMMANDS"]

COMMANDS = (schema, fit, predict, cluster, roc, budget, show, report, sweep, demo)

"""The commands of `privfit`, a module each.

A command has the texts `HELP` and `DESCRIPTION`, ``add(parser)``, which declares its options, and
``run(options, console)``, which does the work and raises `InputError` where it cannot. Around them:

console.py     what is said and where, and the exit codes
arguments.py   numbers among the options, and their bounds
tables.py      reading CSV and Parquet into compact columns
schemafile.py  what a schema file declares
models.py      model files
spending.py    the budget of a run, and the split of its records
outputs.py     files that are written whole or not at all
pictures.py    the same for pictures

The order of a run that spends: read what is declared, open the ledger, claim the files that will be
written, read the records, let the estimator check its plan; then charge, draw, write.
"""

from privfit.commands import budget, cluster, demo, fit, predict, roc, schema, show, sweep

__all__ = ["COMMANDS"]

COMMANDS = (schema, fit, predict, cluster, roc, budget, show, sweep, demo)

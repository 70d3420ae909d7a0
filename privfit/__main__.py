"""``python -m privfit``: the command."""

import sys

from privfit.cli import main

sys.exit(main())

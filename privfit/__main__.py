"""``python -m privfit``: the command."""

import sys

from privfit.commands.main import main

sys.exit(main())

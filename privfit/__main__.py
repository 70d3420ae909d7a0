"""``privfit`` and ``python -m privfit``: the command."""

import sys

from privfit.base.signals import end_by_signals


def command() -> int:
    """Run the command; Ctrl-C and signals while its modules are imported are answered, too."""
    end_by_signals()
    try:
        from privfit.commands.main import main
    except KeyboardInterrupt:
        print("privfit: error: interrupted; nothing was spent", file=sys.stderr)
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(command())

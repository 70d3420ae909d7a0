"""``privfit`` and ``python -m privfit``: the command."""

import sys


def command() -> int:
    """Run the command; Ctrl-C while its modules are still being imported is quiet, too."""
    try:
        from privfit.commands.main import main
    except KeyboardInterrupt:
        print("privfit: error: interrupted; nothing was spent", file=sys.stderr)
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(command())

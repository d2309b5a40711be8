"""``python -m advdiff.cli`` is the command ``advdiff``."""

import sys

from advdiff.cli import main

if __name__ == "__main__":
    sys.exit(main())

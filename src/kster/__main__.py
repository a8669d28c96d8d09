"""`python -m kster` is `kster`."""

import sys

from kster.cli import main

if __name__ == "__main__":
    sys.exit(main())

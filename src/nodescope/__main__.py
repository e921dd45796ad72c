"""`python -m nodescope`: the command line, where no `nodescope` is on the PATH."""

import sys

from nodescope.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

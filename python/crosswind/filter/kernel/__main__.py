"""`python -m crosswind.filter.kernel`: the watchdog of a kernel filter."""

import sys

from crosswind.filter.kernel.watchdog import main

if __name__ == "__main__":
    sys.exit(main())

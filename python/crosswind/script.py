"""The script `crosswind`. It imports the command line where an interruption is answered as later on."""

import sys


def main() -> None:
    """Run the command line and exit with its code, 130 where ctrl-C comes before it has begun."""
    try:
        from crosswind import cli
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    cli.main()

"""`python -m crosswind.cli`, for hosts where the script is not on the path."""

from crosswind.cli import main

main()

"""`python -m paper`."""

from paper.cli import main

main()

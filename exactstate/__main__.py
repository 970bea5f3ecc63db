"""`python -m exactstate` is `exactstate`."""

from exactstate.cli import main

main()

"""A campaign against false claims: random models are read, and run; see `python -m tests.soundness --help`."""

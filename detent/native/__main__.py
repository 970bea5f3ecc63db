"""`python -m detent.native`: one line saying whether the compiled kernels are there."""

from detent.native import threads, why_not

reason = why_not()
if reason is None:
    print(f"detent: compiled kernels ready, {threads()} threads.")
else:
    print(f"detent: everything works, but scans and machine runs are 10 to 100 times slower: {reason}.")

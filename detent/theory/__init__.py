"""The paper's claims, executable: what a recurrence must do to keep track of states, and what it then can."""

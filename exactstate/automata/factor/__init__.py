"""Factor the state of a machine into heads, at the smallest cost.

A head of d indices can track a partition of the states into d blocks on its own exactly when the partition is a
congruence: every symbol sends states of one block into one block (Hartmanis and Stearns, "Algebraic Structure Theory of
Sequential Machines", 1966). Several heads hold the whole state when their congruences meet in equality: no two states
share a block in all of them. A layer with heads of d_1, d_2, ... indices computes sum d_i^2 logits, so that is the
cost: S_4 as one head costs 24^2 = 576, as heads of 4, 3 and 2 indices 29.

`factor(machine)` searches in three stages, each with a budget counted in steps, so that the result is the same on every
computer:

1. Monolith (`lattice.py`). If all congruences but equality merge the same two states, no two of them meet in equality,
   and one head of n indices is the only factoring. The two states are the proof. (In universal algebra: the machine is
   subdirectly irreducible; Birkhoff, "Subdirect unions in universal algebra", 1944.)
2. Lattice and cover (`lattice.py`, `cover.py`). List all congruences by closing the principal ones under join (Freese,
   "Computing congruences efficiently", 2008). A family meets in equality exactly when it separates the pair of every
   atom of the lattice, so the cheapest family is a weighted set cover, solved by branch and bound. If the search
   finishes, the result is proven cheapest among all families of congruences (`Factoring.complete`).
3. Local search (`search.py`, `coarsen.py`), if there are too many congruences to list, as in M_11 with 7,920 states.
   Build a family greedily from maximally coarse congruences, remove random members, fill the gap, keep the best cover
   from everything met. Not proven cheapest.

`factor_into(machine, heads)` finds congruences for heads of given sizes. With `occurs`, transitions that never happen
constrain nothing: the congruences are then those of a partial machine.

What this does not search: cascades, in which a head reads another head's index (Krohn and Rhodes, 1965). Heads of one
layer do not see each other.
"""

from exactstate.automata.factor.factor import Factoring, check_factoring, factor, factor_into

__all__ = ["Factoring", "check_factoring", "factor", "factor_into"]

"""detent: recurrent networks that keep track of state exactly, for as long as it takes."""

"""exactstate inside other libraries: one module for each, imported by its name."""

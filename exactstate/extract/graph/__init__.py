"""Models written elsewhere as graphs of position-wise operations: tracing, evaluation, and bounds of every logit."""

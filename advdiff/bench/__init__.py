"""``advdiff bench``: how fast the solvers are, against the same model written as the pseudo-code reads."""

"""Chat models: the seam, the one vendor behind it, and what the errors of providers mean."""

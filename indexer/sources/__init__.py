"""Files on disk: which are indexed, which are left out, which changed."""

"""Files on disk: which there are, which are left out, which changed."""

"""Search in large indexes: vectors and words packed into one file, searched without the database."""

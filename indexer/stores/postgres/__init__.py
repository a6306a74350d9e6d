"""The index of a workspace in PostgreSQL, and the database that other rooms keep their tables in, too."""

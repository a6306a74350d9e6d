"""Storage of a home: the protocols of every kind of thing that is kept, and the engines that keep it."""

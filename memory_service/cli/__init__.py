"""The command line `memory-service`: one file per group of commands, loaded when it is called."""

"""The commands of the shell, one file per group: each adds its parsers and calls the library."""

"""What every room may use: tests of arguments, warnings, files, JSON, exact vectors."""

"""What every room may use: validation, warnings, files, JSON, exact vectors."""

"""The version, for files that record which one wrote them."""

__version__ = "0.1.0"

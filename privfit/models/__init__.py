"""Models as files: a released model and its declarations, written and read without pickles."""

from privfit.models.model import load, save

__all__ = ["load", "save"]

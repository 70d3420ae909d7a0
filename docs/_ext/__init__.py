"""Small extensions of Sphinx for this site."""

"""Search from the keyboard (Ctrl-K): what a person may open, found by a few letters."""

"""The client that waits for each answer: generated of the one beside it."""

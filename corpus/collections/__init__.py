"""Collections: their settings, grades, the relevance rubric, and the order in which tasks are given out."""

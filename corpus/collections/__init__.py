"""Collections: settings, grades, the relevance rubric, and the order of tasks."""

"""People at work: the task queue, judging, adjudication, quality control, experiments, aspects, guidelines."""

"""Training recipes as configuration: their options, training sets, prompts, measures and rewards."""

"""Recipes of training: what is trained on what with which loss, as configuration."""

"""Published models: what a folder says about its model, how it is opened, and how it scores. Imports torch."""

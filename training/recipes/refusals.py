"""Refusals of a training, in words that pages translate. Pure: the trainer has no settings."""

from corpus.errors import BadInput


class RefusedTraining(BadInput):
    """Wrong input as English text, and the marked words and values that it is made of."""

    def __init__(self, words: str, **values: object) -> None:
        super().__init__(words % values)
        self.words, self.values = words, values

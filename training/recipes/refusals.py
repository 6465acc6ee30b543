"""Refusals of a training whose messages pages can translate (pure, since the trainer has no settings)."""

from corpus.errors import BadInput


class RefusedTraining(BadInput):
    """Bad input of a training: the English message, with the format string (`words`) and values it was made from."""

    def __init__(self, words: str, **values: object) -> None:
        super().__init__(words % values)
        self.words, self.values = words, values

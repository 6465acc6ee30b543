"""Answers that take even time: how long one takes tells nothing of what it brings (an attention check, a repeat)."""

import time
from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse

from annotation.permissions import Scope

GRID_S = 0.025
"""Answers come at multiples of this. People do not feel it; without it a classifier on times alone found checks."""

Desk = Callable[[HttpRequest, Scope], HttpResponse]


def evenly(view: Desk) -> Desk:
    """Wait for the grid where checks or repeats may come; a collection without them loses no time."""

    @wraps(view)
    def answered(request: HttpRequest, scope: Scope) -> HttpResponse:
        began = time.perf_counter()
        response = view(request, scope)
        if scope.collection.has_checks or scope.collection.repeats:
            time.sleep(GRID_S - (time.perf_counter() - began) % GRID_S)
        return response

    return answered

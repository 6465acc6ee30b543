"""What workers do for fillings between their jobs."""

from benchmark.filling.standing import advance, due
from benchmark.filling.starting import prepare
from benchmark.models import Filling


def advance_due() -> None:
    """Prepare what waits for it, and look at what nobody looked at for a while.

    A filling ends by itself that way, and pages show a funnel that is seconds old.
    """
    waiting = Filling.objects.filter(state=Filling.State.PREPARING).order_by("pk").values_list("pk", flat=True)
    for key in list(waiting):
        prepare(key)
    for filling in due():
        advance(filling)

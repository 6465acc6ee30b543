"""What workers do for fillings between their jobs."""

from benchmark.hole_filling.stages import advance_filling, due_fillings, finish_requested
from benchmark.hole_filling.starting import prepare_filling
from benchmark.models import Filling


def advance_due() -> None:
    """Prepare and finish what waits for it, and look at what nobody looked at for a while.

    A filling ends by itself that way, and pages show a funnel that is seconds old. One that fails holds up no other.
    """
    failed: list[Exception] = []
    for state, act in ((Filling.State.PREPARING, prepare_filling), (Filling.State.FINISHING, finish_requested)):
        for key in list(Filling.objects.filter(state=state).order_by("pk").values_list("pk", flat=True)):
            try:
                act(key)
            except Exception as error:
                failed.append(error)
    for filling in due_fillings():
        advance_filling(filling)
    if failed:
        raise ExceptionGroup("fillings that could not go on", failed)

"""Size of the house: modules at the top of each app, lines of each room. `python -m tests.rooms` prints the table."""

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
APPS = ("annotation", "benchmark", "corpus", "judges", "training")
PEOPLE = ("queue", "judging", "adjudication", "quality_control", "experiments")
"""Rooms of annotation that are about people judging."""
MODULES_AT_TOP, LINES_OF_ROOM, LINES_OF_PEOPLE = 12, 5_000, 9_000
NO_ROOMS = {"migrations", "management", "templatetags"}


def sources() -> list[Path]:
    """Source files of the apps, without migrations, by their path in the repository."""
    paths = (path.relative_to(ROOT) for app in APPS for path in sorted((ROOT / app).rglob("*.py")))
    return [path for path in paths if "migrations" not in path.parts]


def tops() -> Counter[str]:
    """Modules at the top of each app, `__init__` not counted."""
    return Counter(path.parts[0] for path in sources() if len(path.parts) == 2 and path.stem != "__init__")


def rooms() -> Counter[str]:
    """Lines of each room, by `app/room`."""
    found: Counter[str] = Counter()
    for path in sources():
        if len(path.parts) > 2 and path.parts[1] not in NO_ROOMS:
            found["/".join(path.parts[:2])] += len((ROOT / path).read_text().splitlines())
    return found


def too_large() -> list[str]:
    """One line for each limit that does not hold."""
    lines = rooms()
    people = sum(lines[f"annotation/{room}"] for room in PEOPLE)
    said = [f"{app}/: {count} modules at the top" for app, count in tops().items() if count > MODULES_AT_TOP]
    said += [f"{room}: {count:,} lines" for room, count in lines.items() if count > LINES_OF_ROOM]
    if people > LINES_OF_PEOPLE:
        said.append(f"{', '.join(PEOPLE)}: {people:,} lines together")
    return said


if __name__ == "__main__":
    for app, count in sorted(tops().items()):
        sys.stdout.write(f"{count:6}  modules at the top of {app}/\n")
    for room, count in sorted(rooms().items()):
        sys.stdout.write(f"{count:6,}  {room}\n")
    wrong = too_large()
    sys.stdout.write("".join(f"too large: {line}\n" for line in wrong))
    sys.exit(bool(wrong))

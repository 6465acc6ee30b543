"""Files in a zip archive or a folder, checked before any of them is opened. Pure."""

import zipfile
from pathlib import Path, PurePosixPath

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats import files
from corpus.formats.files import FileSource

# Each file is inspected and has a line on the import page; a file in an archive is read in a
# separate process, which takes a fiftieth of a second.
MAX_MEMBERS, MAX_FILES = 200, 1_000
_OFFICE = ("xl/", "word/", "content.xml")  # Documents of office programs are zip archives, too.


def is_archive(path: Path) -> bool:
    """Return whether a file is a zip archive, by its first bytes, and not a workbook."""
    if not files.is_zip(path):
        return False
    try:
        return not any(name.startswith(_OFFICE) for name in files.open_archive(path).names)
    # A damaged archive counts as one: list_members reports the damage.
    except zipfile.BadZipFile:
        return True


def list_members(source: FileSource) -> list[str]:
    """Return the names of the files in a zip archive, in order. Raises BadInput for an unsafe archive."""
    name, path = str(source), source.path
    try:
        members = []
        for member in source.open_archive().infolist():
            member_path = PurePosixPath(member.filename.replace("\\", "/"))
            # Without folders, and without the files that desktops add to archives.
            if not (member.is_dir() or member_path.parts[:1] == ("__MACOSX",) or member_path.name.startswith(".")):
                members.append(member)
    except files.TooManyMembers:
        message = _("%(file)s: more than %(most)s files in it; make smaller archives")
        raise BadInput(message % {"file": name, "most": f"{MAX_MEMBERS:,}"}) from None
    except zipfile.BadZipFile:
        raise BadInput(_("%(file)s: the zip archive is damaged; make it again") % {"file": name}) from None
    if not members:
        raise BadInput(_("%(file)s: the zip archive is empty") % {"file": name})
    if len(members) > MAX_MEMBERS:
        message = _("%(file)s: %(n)s files in it; make an archive of at most %(most)s")
        raise BadInput(message % {"file": name, "n": f"{len(members):,}", "most": f"{MAX_MEMBERS:,}"})
    for member in members:
        # Programs on Windows write backslashes: a name is refused if it leads outside on any system.
        member_name = member.orig_filename.replace("\\", "/")
        if member_name.startswith("/") or ":" in member_name or ".." in member_name.split("/"):
            problem = _('%(file)s: "%(member)s" has a path outside the archive; make it again without such paths')
        elif member.flag_bits & 1:
            problem = _('%(file)s: "%(member)s" in it is encrypted; make the archive without a password')
        elif member.file_size > max(files.UNPACKED, files.MAX_RATIO * member.compress_size):
            problem = _(
                '%(file)s: "%(member)s" in it unpacks to more than %(ratio)s times its size, as no text does; '
                "look at it yourself"
            )
        else:
            continue
        raise BadInput(problem % {"file": name, "member": member.orig_filename[:200], "ratio": files.MAX_RATIO})
    # Members may overlap in the archive: each one passes the check, but together they are a bomb.
    size_limit = max(files.UNPACKED, files.MAX_RATIO * path.stat().st_size)
    if sum(member.file_size for member in members) > size_limit:
        message = _("%(file)s: its files unpack to more than %(ratio)s times its size; check the archive")
        raise BadInput(message % {"file": name, "ratio": files.MAX_RATIO})
    return [member.filename for member in members]


def list_folder(folder: Path) -> list[Path]:
    """Return the files in a folder except hidden ones and links out of it. Raises BadInput for none, or too many."""
    root = folder.resolve()
    paths = []
    for path in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        # A link may lead to files outside the folder, which its owner did not mean to import.
        if path.is_file() and not is_hidden and path.resolve().is_relative_to(root):
            paths.append(path)
        if len(paths) > MAX_FILES:
            message = _("%(file)s: more than %(most)s files in it; name the files themselves")
            raise BadInput(message % {"file": folder, "most": f"{MAX_FILES:,}"})
    if not paths:
        raise BadInput(_("%(file)s: the folder contains no files") % {"file": folder})
    return paths

"""Files in a zip archive or a folder, looked at before any of them is opened. Pure."""

import zipfile
from pathlib import Path, PurePosixPath

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats import files
from corpus.formats.files import FileSource

# Each of them is looked into and has a line on the page of the import; one in an archive is read in
# a process of its own, which takes a fiftieth of a second.
MAX_MEMBERS, MAX_FILES = 200, 1_000
_OFFICE = ("xl/", "word/", "content.xml")  # Documents of other programs are zip archives, too.


def is_archive(path: Path) -> bool:
    """Return whether a file is a zip archive, by first bytes. A workbook is none."""
    if not files.is_zip(path):
        return False
    try:
        return not any(name.startswith(_OFFICE) for name in files.open_archive(path).names)
    # A damaged archive is one all the same: list_members says what is wrong with it.
    except zipfile.BadZipFile:
        return True


def list_members(source: FileSource) -> list[str]:
    """Return the names of the files in a zip archive, in order. Raises BadInput for one that cannot be trusted."""
    name, path = str(source), source.path
    try:
        members = []
        for one in source.open_archive().infolist():
            inside = PurePosixPath(one.filename.replace("\\", "/"))
            # Neither folders, nor the files that desktops add to archives.
            if not (one.is_dir() or inside.parts[:1] == ("__MACOSX",) or inside.name.startswith(".")):
                members.append(one)
    except files.TooManyMembers:
        said = _("%(file)s: more than %(most)s files in it; make smaller archives")
        raise BadInput(said % {"file": name, "most": f"{MAX_MEMBERS:,}"}) from None
    except zipfile.BadZipFile:
        raise BadInput(_("%(file)s: the zip archive is damaged; make it again") % {"file": name}) from None
    if not members:
        raise BadInput(_("%(file)s: the zip archive is empty") % {"file": name})
    if len(members) > MAX_MEMBERS:
        said = _("%(file)s: %(n)s files in it; make an archive of at most %(most)s")
        raise BadInput(said % {"file": name, "n": f"{len(members):,}", "most": f"{MAX_MEMBERS:,}"})
    for one in members:
        if problem := _problem_of(one):
            raise BadInput(problem % {"file": name, "member": one.orig_filename[:200], "ratio": files.MAX_RATIO})
    # Members may overlap in the archive: each passes the check alone, and together they are a bomb.
    most = max(files.UNPACKED, files.MAX_RATIO * path.stat().st_size)
    if sum(one.file_size for one in members) > most:
        said = _("%(file)s: its files unpack to more than %(ratio)s times its size; look at it yourself")
        raise BadInput(said % {"file": name, "ratio": files.MAX_RATIO})
    return [one.filename for one in members]


def list_folder(folder: Path) -> list[Path]:
    """Return the files below a folder, but hidden ones and links out of it. Raises BadInput for none, or too many."""
    root = folder.resolve()
    found = []
    for path in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        # A link may lead to files outside of the folder, which its owner did not mean to give.
        if path.is_file() and not is_hidden and path.resolve().is_relative_to(root):
            found.append(path)
        if len(found) > MAX_FILES:
            said = _("%(file)s: more than %(most)s files in it; name the files themselves")
            raise BadInput(said % {"file": folder, "most": f"{MAX_FILES:,}"})
    if not found:
        raise BadInput(_("%(file)s: the folder holds no file") % {"file": folder})
    return found


def _problem_of(member: zipfile.ZipInfo) -> str:
    """Return why a member is refused, with places for the file, the member and the ratio; or ""."""
    # Programs on Windows write backslashes: a name is refused if either system would take it outside.
    written = member.orig_filename.replace("\\", "/")
    if written.startswith("/") or ":" in written or ".." in written.split("/"):
        return _('%(file)s: "%(member)s" in it lies outside the archive; make it again without such paths')
    if member.flag_bits & 1:
        return _('%(file)s: "%(member)s" in it is encrypted; make the archive without a password')
    if member.file_size > max(files.UNPACKED, files.MAX_RATIO * member.compress_size):
        return _(
            '%(file)s: "%(member)s" in it unpacks to more than %(ratio)s times its size, as no text does; '
            "look at it yourself"
        )
    return ""

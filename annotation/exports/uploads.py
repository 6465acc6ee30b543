"""Files that came with the exports page: kept beside the exports, under their hash, where a worker finds them."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext as _

from annotation.exports.snapshots import exports_folder
from corpus.errors import BadInput
from corpus.importing.files import FileSource
from corpus.importing.grades import top_of_run
from corpus.models import Collection
from corpus.search import lengths

MOST = 200_000_000


def keep_run(collection: Collection, upload: "UploadedFile[bytes]") -> str:
    """The path of the run. Raises BadInput for a file that is too large or no run, and keeps nothing of it."""

    def check(path: Path) -> None:
        for _row in top_of_run(FileSource(path), 1):
            pass

    return _keep_upload(collection, upload, "runs", check)


def keep_tokenizer(collection: Collection, upload: "UploadedFile[bytes]") -> str:
    """The path of a tokenizer.json. Raises BadInput for a file that is too large or no tokenizer."""
    return _keep_upload(collection, upload, "tokenizers", lambda path: lengths.load_tokenizer(str(path)))


def _keep_upload(
    collection: Collection, upload: "UploadedFile[bytes]", kind: str, check: Callable[[Path], object]
) -> str:
    if upload.size is None or upload.size > MOST:
        raise BadInput(
            _("%(name)s is larger than %(most)s MB; use the command export")
            % {"name": upload.name, "most": MOST // 1_000_000}
        )
    digest = sha256()
    for chunk in upload.chunks():
        digest.update(chunk)
    folder = exports_folder(collection) / kind / digest.hexdigest()
    path = folder / Path(upload.name or kind).name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(upload.chunks())
    try:
        check(path)
    except BadInput as error:
        path.unlink()
        raise BadInput(str(error).replace(str(path), path.name)) from None
    return str(path)

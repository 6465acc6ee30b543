"""Actions on single models: add, edit, delete and restore one, and delete its stored key."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from actions.services import Actor, Unchanged, action
from annotation.home.judge_setup.loading import check_from_browser
from annotation.home.judge_setup.options import ModelOptions
from annotation.home.judge_setup.selectors import describe_uses, panels_of_one
from annotation.quality.panels.applying import newest_file_panel
from corpus.errors import BadInput, BadOption
from corpus.models import Collection
from judges.models import JudgeVersion, Panel
from judges.models.keys import StoredKey
from judges.panels.configuration import store_judges_file, store_key
from judges.panels.judges_file import JudgesFile
from judges.panels.offline_panel import OFFLINE
from judges.panels.panel_table import usual_panel
from judges.records import JudgeSettings
from judges.stored_keys import STORED, address_of, can_store


@dataclass(frozen=True, slots=True)
class ConfiguredModel:
    """A model of the site, and the collection on whose page somebody acts on it."""

    collection: Collection
    judge: JudgeVersion


def _note(options: ModelOptions, judge: JudgeVersion) -> dict[str, Any]:
    about = {"judge": judge.name, "version": judge.version, "stores_key": options.key is not None}
    # Further settings by their length: headers among them may contain a secret.
    return options.noted() | about | ({"more": len(options.more)} if options.more else {})


@action("judge.added", role="own", noted=_note)
def add_model(actor: Actor, collection: Collection, options: ModelOptions) -> JudgeVersion:
    """Add a model to the site. The first one that can judge becomes the default panel. Raises BadOption."""
    name = options.judge_name
    settings = _read_settings(options, name, stored=options.key is not None)
    if JudgeVersion.objects.filter(name=name, is_current=True).exists():
        raise BadOption("name", _("%(name)s exists. Choose another name, or edit that model.") % {"name": name})
    return _store(actor, settings, options)


@action("judge.changed", role="own", noted=_note)
def change_model(actor: Actor, model: ConfiguredModel, options: ModelOptions) -> JudgeVersion | Unchanged:
    """Change the settings of a model: it gets a new version, and its earlier calls keep theirs. Raises BadOption.

    A stored key is kept while provider and base URL stay the same and no variable is named; otherwise it is deleted.
    """
    judge = model.judge
    if not judge.is_current:
        raise BadInput(_("%(name)s is deleted: restore it first") % {"name": judge.name})
    if options.name.strip() not in ("", judge.name):
        raise BadOption("name", _("The name of a model cannot be changed. Add another model."))
    settings = _read_settings(options, judge.name, stored=True)
    is_kept = StoredKey.objects.filter(
        name=STORED + judge.name, address=address_of(settings.provider, settings.base_url)
    ).exists()
    if options.api_key_env.strip() or (options.key is None and not is_kept):
        settings = _read_settings(options, judge.name, stored=False)
    changed = _store(actor, settings, options)
    return Unchanged(changed) if changed.pk == judge.pk and options.key is None else changed


@action("judge.key-deleted", role="own", noted=lambda options, judge: {"judge": judge.name})
def delete_key(actor: Actor, model: ConfiguredModel) -> JudgeVersion:
    """Delete the stored key of a model, whose calls are refused until it has another. Raises BadInput without one."""
    deleted, _counts = StoredKey.objects.filter(name=STORED + model.judge.name).delete()
    if not deleted:
        raise BadInput(_("%(name)s has no stored key") % {"name": model.judge.name})
    return model.judge


@action("judge.deleted", role="own", noted=lambda options, judge: {"judge": judge.name})
def delete_model(actor: Actor, model: ConfiguredModel) -> JudgeVersion:
    """Delete a model: it is configured no longer, its stored key is deleted, and all its answers are kept.

    Raises BadInput while a campaign that has not ended, or a panel with other members, uses it.
    """
    judge = model.judge
    if uses := describe_uses(judge.name):
        raise BadInput(" ".join(uses))
    panels = panels_of_one(judge.name)
    was_default = panels.filter(is_default=True).exists()
    panels.delete()
    if was_default:
        Panel.objects.filter(name=OFFLINE).update(is_default=True)
    StoredKey.objects.filter(name=STORED + judge.name).delete()
    JudgeVersion.objects.filter(name=judge.name, is_current=True).update(is_current=False)
    judge.is_current = False
    return judge


@action("judge.restored", role="own", noted=lambda options, judge: {"judge": judge.name})
def restore_model(actor: Actor, model: ConfiguredModel) -> JudgeVersion:
    """Undo the deletion of a model, without its stored key. Raises BadInput where the name is in use."""
    judge = model.judge
    if JudgeVersion.objects.filter(name=judge.name, is_current=True).exists():
        raise BadInput(_("%(name)s exists") % {"name": judge.name})
    JudgeVersion.objects.filter(pk=judge.pk).update(is_current=True)
    judge.is_current = True
    _make_first_panel(judge)
    return judge


def _read_settings(options: ModelOptions, name: str, *, stored: bool) -> JudgeSettings:
    """Return the settings, after the checks that all models from a browser have. Raises BadOption."""
    if options.key is not None and not can_store():
        raise BadOption("key", _("This site stores no keys. Name a variable instead."))
    key = options.key.get_secret_value().strip() if options.key else None
    if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
        raise BadOption("key", _("Enter the key as the provider shows it, without spaces."))
    if options.key is not None and options.api_key_env.strip():
        raise BadOption("key", _("Enter a key or name a variable, not both."))
    settings = options.read_settings(name, stored=stored and not options.api_key_env.strip())
    check_from_browser(settings)
    return settings


def _store(actor: Actor, settings: JudgeSettings, options: ModelOptions) -> JudgeVersion:
    if options.key is not None:
        address = address_of(settings.provider, settings.base_url)
        store_key(options.key.get_secret_value().strip(), settings.api_key_env, address, by=actor.name)
    store_judges_file(JudgesFile((settings,), None))
    _make_first_panel(settings)
    return JudgeVersion.objects.get(name=settings.name, is_current=True)


def _make_first_panel(judge: JudgeVersion | JudgeSettings) -> None:
    """Make a judge the default panel where no judges file has named one."""
    fields = {name: getattr(judge, name) for name in JudgeSettings.__dataclass_fields__}
    settings = JudgeSettings(**fields)
    if newest_file_panel() is None and (panel := usual_panel([settings])):
        store_judges_file(JudgesFile((settings,), panel))

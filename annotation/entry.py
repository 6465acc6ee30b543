"""Who comes in: session, membership, user, collection and assessor by one prepared statement.

Every request of an annotator begins with it. The ORM would put the same statement together anew each time, and the
database would plan it anew: together a fifth of the time of a judgment.
"""

import json
from functools import cache
from typing import Any

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import connection, models

from annotation.models import Membership, User
from annotation.queue import tuples
from corpus.models import Assessor, Collection

TABLES: dict[str, type[models.Model]] = {"m": Membership, "u": User, "c": Collection, "a": Assessor}


@cache
def _statement() -> str:
    columns = ", ".join(
        f'{alias}."{field.column}" AS "{alias}_{field.attname}"'
        for alias, model in TABLES.items()
        for field in model._meta.concrete_fields
    )
    m, u, c, a = (model._meta.db_table for model in TABLES.values())
    return f"""
        SELECT {columns}, s.session_data
        FROM {UserSession._meta.db_table} us
        JOIN {Session._meta.db_table} s ON s.session_key = us.session_key AND s.expire_date > now()
        JOIN {m} m ON m.user_id = us.user_id JOIN {u} u ON u.id = m.user_id JOIN {c} c ON c.id = m.collection_id
        JOIN {a} a ON a.id = m.assessor_id
        WHERE us.session_key = %(key)s AND c.name = %(name)s AND m.is_active AND u.is_active
    """


def membership_of(key: str, name: str) -> tuple[Membership, str] | None:
    """The active membership of the collection of this name that the session of this key belongs to.

    Its user, collection and assessor are loaded. Beside it the session's data, encoded: it is still to be checked.
    """
    connection.ensure_connection()
    found = tuples(connection.connection, _statement(), {"key": key, "name": name})
    if not found:
        return None
    *values, data = found[0]
    made = _instances(values)
    membership = made["m"]
    membership._state.fields_cache |= {"user": made["u"], "collection": made["c"], "assessor": made["a"]}
    assert isinstance(membership, Membership)
    return membership, data


def _instances(values: list[Any]) -> dict[str, models.Model]:
    """One of each model, from columns that stand one after the other."""
    made: dict[str, models.Model] = {}
    at = 0
    for alias, model, names in _columns():
        made[alias] = model.from_db("default", names, values[at : at + len(names)])
        at += len(names)
    for alias, name in _documents():
        text = getattr(made[alias], name)
        setattr(made[alias], name, None if text is None else json.loads(text))
    return made


@cache
def _documents() -> list[tuple[str, str]]:
    """JSON columns, which Django's connections return as text."""
    fields = [(alias, field) for alias, model in TABLES.items() for field in model._meta.concrete_fields]
    return [(alias, field.attname) for alias, field in fields if isinstance(field, models.JSONField)]


@cache
def _columns() -> list[tuple[str, type[models.Model], list[str]]]:
    return [(alias, model, [f.attname for f in model._meta.concrete_fields]) for alias, model in TABLES.items()]

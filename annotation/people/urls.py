"""Addresses: the people of a collection, each person, invitations."""

from django.urls import URLPattern, path

from annotation.accounts.views import site_people
from annotation.people.views import members, person

urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/members/", members.people, name="members"),
    path("c/<slug:name>/members/invite/", members.invite, name="invite"),
    path("c/<slug:name>/members/link/", members.make_reusable_link, name="make_reusable_link"),
    path("c/<slug:name>/members/join/", members.join, name="join_as_owner"),
    path("c/<slug:name>/members/<int:member>/role/", person.role, name="member_role"),
    path("c/<slug:name>/members/<int:member>/active/", person.active, name="member_active"),
    path("c/<slug:name>/members/<int:member>/password/", site_people.member_password_link, name="member_password_link"),
    path("c/<slug:name>/invitations/<int:invitation>/revoke/", members.revoke, name="revoke_invitation"),
    path("c/<slug:name>/people/<int:member>/", person.person, name="person"),
    path("c/<slug:name>/people/<int:member>/pause/", person.person_pause, name="person_pause"),
    path("c/<slug:name>/people/<int:member>/exclude/", person.exclude_judgments, name="exclude_judgments"),
    path(
        "c/<slug:name>/quality-control/exclusions/<int:act>/reinstate/",
        person.reinstate_judgments,
        name="reinstate_judgments",
    ),
]

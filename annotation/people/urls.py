"""URLs of a collection's members: the list with the invitations, the page of each member, and their forms.

The paths of the list and of its forms begin with "members", because they grant access. Those of the page of one
member begin with "people", because it shows the person's work.
"""

from django.urls import URLPattern, path

from annotation.people import views
from annotation.people.accounts.views import make_member_password_link

# `<int:member>` is the primary key of a Membership, `<int:invitation>` that of an Invitation.
urlpatterns: list[URLPattern] = [
    path("c/<slug:name>/members/", views.show_members, name="members"),
    path("c/<slug:name>/members/invite/", views.invite_members, name="invite_members"),
    path("c/<slug:name>/members/link/", views.make_reusable_link, name="make_reusable_link"),
    path("c/<slug:name>/members/join/", views.join_as_owner, name="join_as_owner"),
    path("c/<slug:name>/members/<int:member>/role/", views.set_member_role, name="set_member_role"),
    path("c/<slug:name>/members/<int:member>/active/", views.set_member_active, name="set_member_active"),
    path("c/<slug:name>/members/<int:member>/password/", make_member_password_link, name="make_member_password_link"),
    path("c/<slug:name>/invitations/<int:invitation>/revoke/", views.revoke_invitation, name="revoke_invitation"),
    path("c/<slug:name>/people/pay/", views.show_pay, name="pay"),
    path("c/<slug:name>/people/pay.csv", views.pay_csv, name="pay_csv"),
    path("c/<slug:name>/people/<int:member>/", views.show_member, name="member"),
    path("c/<slug:name>/people/<int:member>/pause/", views.pause_member, name="pause_member"),
    path("c/<slug:name>/people/<int:member>/limits/", views.set_member_limits, name="set_member_limits"),
    path("c/<slug:name>/people/<int:member>/exclude/", views.exclude_judgments, name="exclude_judgments"),
    # The list of all exclusions of judgments is a page of quality control.
    path(
        "c/<slug:name>/quality-control/exclusions/<int:exclusion>/reinstate/",
        views.reinstate_judgments,
        name="reinstate_judgments",
    ),
]

"""The address where language and contrast are chosen."""

from django.urls import path

from annotation.accounts.views import display

urlpatterns = [path("display/", display.display, name="display")]

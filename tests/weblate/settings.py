"""Weblate's settings for `check.py`: its own, with everything it keeps in the directory that run.sh makes."""

import os

from weblate.settings_example import *  # noqa: F403

DATA_DIR = os.environ["WEBLATE_CHECK_DIR"]
CACHE_DIR = f"{DATA_DIR}/cache"
MEDIA_ROOT = f"{DATA_DIR}/media"
STATIC_ROOT = f"{CACHE_DIR}/static"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "weblate",
        "USER": "weblate",
        "HOST": os.environ["WEBLATE_CHECK_DIR"],  # of the socket
    }
}
CACHES = {
    name: {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"} for name in ("default", "avatar")
}
CELERY_TASK_ALWAYS_EAGER = True
CELERY_BROKER_URL = "memory://"
CELERY_RESULT_BACKEND = None
SECRET_KEY = "for this check only"
SITE_DOMAIN = "localhost"
DEBUG = False
VCS_FILE_PROTOCOL = True  # the repository lies in DATA_DIR, too
LOGGING_CONFIG = None  # warnings only

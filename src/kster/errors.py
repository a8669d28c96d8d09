"""The one kind of error meant for people."""


class KsterError(Exception):
    """A mistake the user can mend.

    The message says what was wrong, where (file, line, unit, setting), what is accepted and what was
    left untouched. The command line prints it as one line and exits with status 2; the server turns
    it into a 4xx answer. Anything else that is raised is a bug.
    """


class DamagedMemory(KsterError):
    """A memory whose files are missing, cut or altered: others can still be used without it."""

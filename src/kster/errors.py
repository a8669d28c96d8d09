"""Errors meant for people: one family, with a few kinds that are worth catching by themselves."""


class KsterError(Exception):
    """A mistake the user can correct.

    The message says what was wrong, where (file, line, unit, setting), what is accepted and what was
    left untouched. The command line prints it as one line and exits with status 2; the server turns
    it into a 4xx answer. Anything else that is raised is a bug.
    """


class FormatError(KsterError):
    """A file of pairs or terms, or a document, that cannot be read or written in its format."""


class ModelError(KsterError):
    """A base model that is missing, damaged, of an unknown kind, or not for these languages."""


class SettingsError(KsterError):
    """A setting that does not exist, or has a value that is not accepted."""


class MemoryStoreError(KsterError):
    """A memory that is not there, belongs to another model, or whose files cannot be read or written."""


class DamagedMemory(MemoryStoreError):
    """A memory whose files are missing, cut or altered: others can still be used without it."""


class MemoryBusy(MemoryStoreError):
    """Another writer held a memory for longer than `lock_timeout`; nothing was changed, so try again."""


class DiskFull(MemoryStoreError):
    """There is no room left for a memory's files; what was there before is unharmed."""

"""What the user can mend: every message says what is wrong, where, and what to do."""


class KeypatchError(Exception):
    """Base of all errors meant for the user; the command line prints its text and exits with code 2."""


class DataError(KeypatchError):
    """A file or folder is missing, cut off, malformed or of another kind than expected."""


class RecipeError(KeypatchError):
    """A recipe or a setting does not fit."""


class MissingExtra(KeypatchError):
    """An optional package is not installed; the message names the extra."""


class Interrupted(KeypatchError):
    """Work stopped on request, with everything done so far saved; the command line exits with code 130."""

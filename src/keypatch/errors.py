"""Errors the user can fix: every message says what is wrong, where, and what to do."""

from typing import Self


class KeypatchError(Exception):
    """Base of all errors meant for the user; the command line prints its text and exits with code 2.

    >>> kp.load("hynt")
    Traceback (most recent call last):
    keypatch.errors.KeypatchError: There is no descriptor, run folder or weight file "hynt". ...
    """


class DataError(KeypatchError):
    """A file or folder is missing, cut off, malformed or of another kind than expected."""


class RecipeError(KeypatchError):
    """A recipe or a setting does not fit."""


class Taken(KeypatchError):
    """Another process is writing the same file or folder."""


class MissingExtra(KeypatchError):
    """An optional package is not installed; the message names the extra."""

    @classmethod
    def of(cls, needs: str, extra: str, instead: str = "") -> Self:
        """`needs` says who needs what: "The detector keynet needs kornia"; `instead` what else can be done."""
        return cls(f"{needs}: pip install 'keypatch[{extra}]'{f', or {instead}' if instead else ''}.")


class Interrupted(KeypatchError):
    """Work stopped on request, with what was done saved; the command line exits with code 130.

    `kept` says what keeps what: "photos.h5 keeps the 12 photos described so far"; empty where nothing was written.
    """

    RESUME = "run the same command to resume"

    def __init__(self, kept: str = "", resume: str = RESUME) -> None:
        nothing = "Stopped; nothing was written. Run the same command to start again."
        super().__init__(f"Stopped. {kept}; {resume}." if kept else nothing)

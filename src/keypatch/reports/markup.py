"""HTML put together from elements, so that a text can never become a tag: whatever is not Markup is escaped."""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_VOID = ("br", "img", "input", "meta")  # elements without an end


class Markup(str):
    """Text that is HTML already."""


Content: TypeAlias = str | Iterable["Content"]
Attribute: TypeAlias = str | int | float | bool | None


def element(name: str, /, *children: Content, **attributes: Attribute) -> Markup:
    """<name ...>children</name>; `class_` is class, `aria_label` is aria-label; None and False leave one out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{name}{written}>" + ("" if name in _VOID else f"{join(children)}</{name}>"))


def join(content: Content) -> Markup:
    """The parts one after the other; a str is escaped, Markup stays as it is."""
    if isinstance(content, Markup):
        return content
    return Markup(_escaped(content) if isinstance(content, str) else "".join(join(part) for part in content))


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_escaped(str(value))}"'


def _escaped(text: str) -> str:
    """A name in a file of others may hold half a surrogate pair, which no UTF-8 file can."""
    return escape(text.encode("utf-8", "replace").decode("utf-8"), quote=True)

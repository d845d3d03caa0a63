"""Text that came from outside, as it may be shown, sent and stored.

Used wherever a file name leaves the process. File names are bytes to the system: Python carries those that are no
text as lone surrogates, which no file, message or terminal takes.
"""

import codecs
import difflib
import os

AS_SHOWN = "stillwatch_shown"  # the name of `_escape` among the ways in which a stream takes what it cannot encode


def shown(text: str) -> str:
    """Return the text with what is no UTF-8 escaped ("caf\\xe9.mp4"), and what is UTF-8 as itself in any locale."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return text


def absent(path: str) -> str:
    """Return what a person is told of a path to nothing: the path, the name nearest to it or where it was sought."""
    path = os.fspath(path)
    folder, name = os.path.split(path.rstrip("/"))
    where = folder or os.getcwd()
    try:
        names = os.listdir(where)
    except (OSError, ValueError):  # ValueError: a name with a null byte, which no folder has
        names = []
    near = difflib.get_close_matches(name, names, n=1)
    remedy = f"did you mean {os.path.join(folder, near[0])}?" if near else f"give one that is there; sought in {where}"
    return shown(f"{path}: no such file or folder; {remedy}")


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = shown(error.object[error.start : error.end])
    return text.encode(error.encoding, "backslashreplace").decode(error.encoding), error.end


codecs.register_error(AS_SHOWN, _escape)

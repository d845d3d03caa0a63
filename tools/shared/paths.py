"""Paths that a command line names.

Called by the arguments of every command that reads a file or folder. One rule: what is not there is bad usage.
"""

import os

from stillwatch.base import UsageError, shown


def existing_source(text: str) -> str:
    """Return what names a source as given; UsageError where it is a path alone (no scheme, no pattern) to nothing."""
    return text if any(mark in text for mark in ":*?[") else existing(text)


def existing(text: str) -> str:
    """Return the path as given; UsageError, so exit code 2, where there is no such file or folder."""
    if not os.path.exists(text):
        raise UsageError(f"{shown(text)}: no such file or folder")
    return text

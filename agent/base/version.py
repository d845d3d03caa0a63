"""The one place that says which version this is; read by packaging, recordings and `stillwatch --version`.

Raised with each release, tagged in git.
"""

__version__ = "0.1.0"

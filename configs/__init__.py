"""Config files that travel with the package: demo.toml, surveillance.toml, auv.toml.

Owns: every key with a comment; the defaults are the code's.
In: nothing. Out: files.
Imports: nothing of ours.
"""

if __name__ != "stillwatch.configs":
    raise ImportError("import stillwatch.configs, not configs: a second copy of every class would follow")

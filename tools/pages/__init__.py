"""What is made of the code's own tables: the pages for people who build the other end, the keys that a config lacks.

Owns: the words between the tables.
In: the wire's tables, the settings. Out: Markdown, TOML.
Imports: the agent, transport, tools.shared, tools.
"""

"""The pages for people who build the other end, made from the code's own tables.

Owns: the words between the tables.
In: the wire's tables. Out: Markdown.
Imports: the agent, transport, tools.shared.
"""

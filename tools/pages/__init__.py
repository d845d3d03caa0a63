"""The pages for people who build the other end, made from the code's own tables.

In: the wire's tables. Out: Markdown.
Imports: transport.
"""

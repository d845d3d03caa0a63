"""The commands of `stillwatch`, found by cli.py: one file each, or a folder where it takes more.

Owns: arguments, words on the terminal, exit codes.
In: a command line. Out: what the command says, and its files.
Imports: the agent, transport, tools.shared, tools.report.
"""

if __name__ != "stillwatch.tools":
    raise ImportError("import stillwatch.tools, not tools: a second copy of every class would follow")

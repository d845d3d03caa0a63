if __name__ != "stillwatch.tools":
    raise ImportError("import stillwatch.tools, not tools: a second copy of every class would follow")

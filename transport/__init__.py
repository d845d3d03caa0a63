if __name__ != "stillwatch.transport":
    raise ImportError("import stillwatch.transport, not transport: a second copy of every class would follow")

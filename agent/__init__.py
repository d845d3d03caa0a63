if __name__ != "stillwatch.agent":
    raise ImportError("import stillwatch.agent, not agent: a second copy of every class would follow")

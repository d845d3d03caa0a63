if __name__ != "stillwatch.configs":
    raise ImportError("import stillwatch.configs, not configs: a second copy of every class would follow")

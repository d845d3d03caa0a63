if __name__ != "stillwatch.kernels":
    raise ImportError("import stillwatch.kernels, not kernels: a second copy of every class would follow")

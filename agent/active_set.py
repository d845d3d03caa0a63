"""Gaussian-process objectives of StreamGreedy: expected variance reduction F_V (3.4) and entropy F_H (3.3).

Called by agent/exemplars.py. It must not know of payloads, ids or the stream: it sees blocks, slots and W.
"""


class VarianceObjective:
    pass


class EntropyObjective:
    pass

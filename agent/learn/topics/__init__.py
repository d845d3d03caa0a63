"""The memory-bounded topic model: documents share topics, each mixes them in its own way (thesis chapter 3).

In: words (rows) by document. Out: topics, shares of documents, states. Built on mixture/, whose clumps and moves it
shares: the mixture is the case of one document.
"""

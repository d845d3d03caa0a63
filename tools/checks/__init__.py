"""What is asked before a run: is this config right, do odd inputs end well.

Owns: the corpus of bad inputs, and what each must lead to.
In: configs, inputs. Out: lists of faults.
Imports: the agent, transport, tools.shared.
"""

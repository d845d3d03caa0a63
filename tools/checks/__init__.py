"""What is asked before a run: is this config right, do odd inputs end well.

In: configs, inputs. Out: lists of faults.
Imports: agent.
"""

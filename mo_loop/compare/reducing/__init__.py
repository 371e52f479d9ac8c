"""Delta debugging: the smallest model that still shows a condition.

====================  ==================================================================================
`candidate`           a model with its inputs, and its size
`smaller_candidates`  fewer outputs and nodes, a body in place of its Loop, Scan or If, smaller numbers
`trial`               the condition that the model has to show; trials of candidates in worker processes
`search`              the order of these, bounded by time
`reducing`            the function for all of it
====================  ==================================================================================
"""

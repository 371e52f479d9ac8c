"""Delta debugging: the smallest model that still shows a condition.

====================  ==================================================================================
`candidate`           a model with its inputs, and its size
`smaller_candidates`  fewer outputs and nodes, a body in place of its Loop, Scan or If, smaller numbers
`trial`               the condition that the model has to show; a candidate that is converted and run for it
`reducing`            the search, and the function for all of it
====================  ==================================================================================
"""

"""Delta debugging: the smallest model that still shows a condition.

================  =====================================================================================
`trial`           the condition that the model has to show; a candidate that is converted and run in a worker process
`candidate`       a model with its inputs, its size and inner tensors; fewer outputs and nodes
`smaller_bodies`  fewer nodes and states in bodies, a body in place of its Loop, Scan or If; shorter dimensions
`search`          the order of these, bounded by time
`reducing`        the function for all of it
================  =====================================================================================
"""

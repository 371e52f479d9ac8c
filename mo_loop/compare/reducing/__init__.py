"""Delta debugging: the smallest model that still shows a condition.

================  =====================================================================================
`condition`       what the model has to show: numbers that differ, an error code, a crash, an exit code
`trial`           one candidate, converted and run in a worker process
`candidate`       a model with its inputs and its size
`inner_values`    the values and types of its inner tensors
`nodes`           fewer outputs and nodes: inner tensors become inputs
`smaller_bodies`  fewer nodes in bodies, fewer states; a body in place of its Loop, Scan or If
`smaller_sizes`   shorter dimensions, fewer iterations, weights without content
`search`          the order of these, bounded by time
`reducing`        the function for all of it
================  =====================================================================================
"""

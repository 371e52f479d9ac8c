"""Delta debugging: the smallest model that still shows a condition.

============  ==========================================================================================
`candidates`  a model with its inputs, and its size; smaller ones
`trial`       the condition that the model has to show; a candidate that is converted and run for it
`reducing`    the search, and the function for all of it
============  ==========================================================================================
"""

"""The contents of a model as records: inspections, differences, dumps and pages are views of them.

    structure = opened("model.onnx")                    # also an IR, a file of a dump, a Model or a Graph
    [item.operator for item in structure.main.items]

==================  ===================================================================================================
`structure`         scopes, items, what feeds the bodies of an item and what it takes from them, the same for all models
`opening`           the files and objects that can be read, as structures and as the records of nodes
`of_onnx`           the structure of an ONNX model, with the port maps of its bodies
`of_graph`          that of a Graph, an IR, a dump, or an .xml that is only inspected, and need not be a graph
`trip_counts`       what decides how often a loop runs
`data`              constants: how much two of them differ, and how the page shows them
`node_records`      nodes and scopes of a Graph as plain data with ids that stay, for dumps and pages; port maps,
                    interpreted
`node_link`         their form in the JSON of a dump, and how its files are read back
==================  ===================================================================================================
"""

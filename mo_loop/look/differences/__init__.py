"""The difference of two models: nodes added, removed and changed, also in bodies.

    from mo_loop import diff
    print(diff("old.xml", "new.xml"))

===============  =====================================================================================================
`opening`        the files and objects that can be compared
`of_onnx`        the structure of an ONNX model; `of_graph` of a Graph; `of_dump` of a JSON dump
`structure`      scopes, items and port maps, the same for all kinds of models
`pairing`        which item is which: `pairs`, by names and by `alignment`, which uses `keys` of equal structure
`changes`        what differs between paired items; `port_changes` in their port maps, `data` in weights
`difference`     the result, which has `change`s; `listing` shows it as text
===============  =====================================================================================================
"""

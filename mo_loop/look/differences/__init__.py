"""The difference of two models: nodes added, removed and changed, also in bodies.

    from mo_loop import diff
    print(diff("old.xml", "new.xml"))

===============  =====================================================================================================
`comparing`      `diff`: two structures (mo_loop/look/records) of one kind, and the result, also as text
`pairing`        which item is which: by names, and by `keys` of equal structure
`changes`        what differs between paired items
===============  =====================================================================================================
"""

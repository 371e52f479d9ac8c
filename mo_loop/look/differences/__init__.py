"""The difference of two models: nodes added, removed and changed, also in bodies.

    from mo_loop import diff
    print(diff("old.xml", "new.xml"))

===============  =====================================================================================================
`comparing`      `diff`: two structures (mo_loop/look/records) of one kind
`pairing`        which item is which: `pairs`, by names and by `alignment`, which uses `keys` of equal structure
`changes`        what differs between paired items; `port_changes` in their port maps
`difference`     the result, which has `change`s; `listing` shows it as text
===============  =====================================================================================================
"""

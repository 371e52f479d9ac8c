"""Passes that replace an operation by older ones, so that older runtimes can read the file.

    class SoftSignDecomposition(MatcherPass):
        \"\"\"SoftSign-9: softsign(x)  ->  x / (1 + |x|)\"\"\"

        enabled_by_default = False

        x = any_input()
        pattern = wrap_type(ops.SoftSign, x)

There are two kinds of passes in this package.

- The same operation of an older opset, where nothing that is new in the newer one is used: `ConvertPad12ToPad1`, named
  after both operations and opsets. The result is the same, so these passes are part of every
  conversion. They run after constants are folded (then it is known whether a pad is negative) and before the passes
  that look for forms which the runtime computes wrongly (these passes look for the older operation).
- A composition of older operations: `SoftSignDecomposition`, named after the operation that it replaces. It takes more
  nodes and may round differently, so it has `enabled_by_default = False`: a user whose runtime is older calls
  `config.enable("SoftSignDecomposition")`.

`Downgrade` runs both kinds in one traversal.

The first line of each pass names the operation and opset that it removes. No pass makes a node of a newer opset.
"""

"""A newer operation written with older ones, so that older runtimes read the file too.

    class SoftSignToDivide(MatcherPass):
        \"\"\"SoftSign-9: softsign(x)  ->  x / (1 + |x|)\"\"\"

        enabled_by_default = False

        def __init__(self):
            super().__init__()
            self.x = any_input()
            self.register_matcher(wrap_type(ops.SoftSign, self.x), self.write_out)

There are two kinds, and no others belong here.

- The same operation of an older opset, where the newer one is not used for what is new in it: `Pad12ToPad1`, named
  after both classes and opsets, in `lowest_opset.py`. Nothing is computed otherwise, so these are part of every
  conversion, after constants are folded (whether a pad is negative is known then) and before the passes that look for
  forms which the runtime computes wrongly (what they look for is the older operation).
- A composition of older operations: `SoftSignToDivide`, named after what it is made of, in a file of its own. It takes
  more nodes and may round otherwise, so it has `enabled_by_default = False`: `config.enable("SoftSignToDivide")` is for
  those who know their runtime to be older. All of these run where the first kind does, in one walk: `Downgrade`.

Each pass says in its first line which opset it avoids; none makes a node of a newer opset than it removes.
"""

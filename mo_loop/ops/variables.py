"""Variables that keep their value from one inference to the next."""


from mo_loop.graph.types import ElementType, TensorType
from mo_loop.ops.base import Op


class Variable(Op, abstract=True):
    """The base of both operations: the name of the variable, and its type."""

    variable_id: str
    variable_type: ElementType
    variable_shape: tuple  # of ints and Dims


class ReadValue(Variable, opset=6):
    """The value of a variable; `initial` before it is assigned. Spec: ReadValue-6."""

    def infer(self, initial=None):
        return TensorType(self.variable_type, self.variable_shape)


class Assign(Variable, opset=6, kept=True):
    """Sets the variable, and returns the value. A sink. Spec: Assign-6."""

    def infer(self, value):
        return value

    def xml_attributes(self):
        return {"variable_id": self.variable_id}  # the file has the type at the ReadValue alone

"""parse: text to graphs. mo_loop/text/__init__.py describes the grammar."""

from difflib import get_close_matches
from typing import Any

from mo_loop import ops
from mo_loop.errors import InputError, MoLoopError
from mo_loop.graph import Graph, Node, Tensor, Value
from mo_loop.ops.base import Constant, Op, Parameter, Result, type_of_tensor
from mo_loop.ops.control import Control, If
from mo_loop.ops.front import Failed
from mo_loop.text.attributes import (
    BODIES,
    PORTS,
    Names,
    fed_types,
    parse_attribute,
    parse_info,
    parse_list,
    parse_ports,
    resolved,
)
from mo_loop.text.literals import Literal, implied_type, parse_data, parse_literal, sees_literal, shaped
from mo_loop.text.spelling import RESULT, VALUE, WORD, Scanner, parse_type, show_type


def parse(text: str) -> Graph:
    """The graph that `text` describes.

    Raises:
        InputError: the text breaks the grammar, uses an undefined name, or states a type that contradicts inference;
            the message starts with the line.
    """
    scanner = Scanner(text)
    parser = _Parser(scanner)
    if scanner.accept("graph"):
        graph = Graph("" if scanner.sees("{") else scanner.word_or_string("a name"))
        scanner.expect("{")
        parser.statements(graph, {})
        scanner.expect("}")
    else:
        graph = Graph()
        parser.statements(graph, {})
    if not scanner.at_end:
        raise scanner.fail("expected a statement or the end of the text")
    graph.validate()
    parser.check_types()
    return graph


class _Parser:
    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.checks: list[tuple[int, str, Value, str]] = []

    def check_types(self) -> None:
        """Compare every type in the text with inference, after the whole graph is built."""
        for line, label, value, said in self.checks:
            found = show_type(value.type)
            if found != said:
                raise self.scanner.fail(f"%{label} is {found} by inference, but the text declares {said}", line)

    def statements(self, graph: Graph, feeds: dict[str, Any]) -> Names:
        """Take the statements up to a closing brace."""
        names = Names(graph, feeds)
        while not self.scanner.at_end and not self.scanner.sees("}"):
            if self.scanner.accept("info"):
                graph.rt_info.update(parse_info(self.scanner))
            else:
                self.statement(names)
        return names

    def statement(self, names: Names) -> None:
        scanner, line = self.scanner, self.scanner.line
        outputs = self._outputs()
        cls = self._class(scanner.require(WORD, "an operation"), line)
        try:
            if cls is Parameter:
                self._parameter(names, outputs, line)
            elif cls is Constant:
                self._constant(names, outputs, line)
            else:
                self._operation(cls, names, outputs, line)
        except MoLoopError as error:
            if error.message.startswith("line "):
                raise
            where = error.origin or error.where
            raise InputError(f"line {line}: {error.message}", where=where, hint=error.hint, code=error.code) from error

    def _outputs(self) -> list[str | None]:
        scanner = self.scanner
        labels: list[str | None] = []
        while scanner.sees("%") or scanner.accept("_"):
            label = scanner.match(VALUE)
            labels.append(None if label is None else label[1:])
            if not scanner.accept(","):
                break
        if labels:
            scanner.expect("=")
        return labels

    def _class(self, word: str, line: int) -> Any:
        cls = getattr(ops, word, None)
        if isinstance(cls, type) and issubclass(cls, Op) and not cls.abstract:
            return cls
        close = get_close_matches(word, dir(ops), 3)
        raise self.scanner.fail(f"there is no operation {word}", line, f"perhaps {', '.join(close)}" if close else "")

    # -- statements

    def _parameter(self, names: Names, outputs: list[str | None], line: int) -> None:
        types, name, tensor_names, info = self._right()
        label = outputs[0] if outputs else None
        if types is None and label not in names.feeds:
            raise self.scanner.fail("a Parameter needs a type where no port map feeds it", line)
        type_ = names.feeds[label or ""] if types is None else types[0]
        parameter = Parameter(graph=names.graph, type=type_, name=name)
        self._define(names, parameter, outputs, types, tensor_names, info, line)

    def _constant(self, names: Names, outputs: list[str | None], line: int) -> None:
        literal, seed = parse_data(self.scanner)
        types, name, tensor_names, info = self._right()
        try:
            tensor = shaped(self.scanner, literal, seed, types[0] if types else None, line)
        except (ValueError, OverflowError) as error:
            raise self.scanner.fail(str(error), line) from None
        constant = Constant(tensor, graph=names.graph, name=name)
        self._define(names, constant, outputs, types, tensor_names, info, line)

    def _operation(self, cls: type[Op], names: Names, outputs: list[str | None], line: int) -> None:
        inputs = self._inputs(cls, names)
        label = self.scanner.match(RESULT) if cls is Result else None
        attributes, ports = self._attributes(cls)
        types, name, tensor_names, info = self._right()
        node: Any
        if cls is Result:
            node = self._result(names, inputs, name, label, line)
            node.__dict__["output_names"] = tuple(tensor_names.pop(0)) if tensor_names else ()
        elif issubclass(cls, Control):
            bodies = self._bodies(cls, inputs, ports)
            attributes |= resolved(self.scanner, line, cls, ports, bodies)
            node = cls(*inputs, graph=names.graph, name=name, **attributes)
        elif cls is Failed:
            node = Failed(*inputs, graph=names.graph, error=attributes.get("error"), count=len(outputs), name=name)
        else:
            node = cls(*inputs, graph=names.graph, name=name, **attributes)
        self._define(names, node, outputs, types, tensor_names, info, line)

    def _result(self, names: Names, inputs: list[Any], name: str, label: str | None, line: int) -> Result:
        if len(inputs) != 1 or inputs[0] is None:
            raise self.scanner.fail("a Result has one input", line)
        value = inputs[0]
        if isinstance(value, Tensor):
            value = Constant(value, graph=names.graph).output
        result = Result(value, name=name)
        if label is not None and label[1:] in names.results:
            raise self.scanner.fail(f"{label} is defined twice", line)
        known = next((key for key, each in names.values.items() if each is value), "")
        names.results.setdefault(label[1:] if label is not None else known, result)
        return result

    def _define(
        self, names: Names, node: Node, outputs: list[str | None], types: list[Any] | None,
        tensor_names: list[list[str]], info: dict[str, Any], line: int,
    ) -> None:
        count = len(node.outputs)
        for what, given in (("outputs", outputs), ("types", types), ("lists of names", tensor_names)):
            wrong = given is not None and (len(given) > count if what == "lists of names" else len(given) != count)
            if wrong and given is not None:
                raise self.scanner.fail(f"{len(given)} {what} for a {type(node).__name__} of {count}", line)
        for position, (label, value) in enumerate(zip(outputs, node.outputs, strict=True)):
            if position < len(tensor_names):
                value.names = tuple(tensor_names[position])
            if types is not None:
                self.checks.append((line, label or "_", value, show_type(types[position])))
            if label is None:
                continue
            if label in names.values:
                raise self.scanner.fail(f"%{label} is defined twice", line)
            names.values[label] = value
        if info:
            node.rt_info.update(info)

    # -- parts of a statement

    def _inputs(self, cls: type[Op], names: Names) -> list[Any]:
        given: list[Any] = []
        parse_list(self.scanner, "(", ")", lambda: given.append(self._input(names)))
        types = [each.type for each in given if isinstance(each, Value)]
        return [self._tensor(each, cls, port, types) if isinstance(each, Literal) else each
                for port, each in enumerate(given)]

    def _input(self, names: Names) -> Value | Literal | None:
        label = self.scanner.match(VALUE)
        if label is None:
            if self.scanner.accept("_"):
                return None
            if not sees_literal(self.scanner):
                raise self.scanner.fail("expected an input: %value, a literal, or _ for an absent one")
            return parse_literal(self.scanner)
        value = names.values.get(label[1:])
        if value is None:
            inside = names.graph.owner is not None or names.feeds
            hint = "a body reads only its own values: add a Parameter to the port map" if inside else ""
            raise self.scanner.fail(f"{label} is not defined here", hint=hint)
        return value

    def _tensor(self, literal: Literal, cls: type[Op], port: int, types: list[Any]) -> Tensor:
        try:
            return literal.tensor(implied_type(cls, port, literal.kind, types))
        except (ValueError, OverflowError) as error:
            raise self.scanner.fail(str(error)) from None

    def _attributes(self, cls: type[Op]) -> tuple[dict[str, Any], dict[str, Any]]:
        attributes: dict[str, Any] = {}
        ports: dict[str, Any] = {}
        scanner = self.scanner

        def attribute() -> None:
            key = scanner.require(WORD, "an attribute")
            if key not in cls.attributes:
                raise scanner.fail(f"{cls.__name__} has no attribute {key}", hint=f"it has {', '.join(cls.attributes)}")
            scanner.expect(":")
            if not issubclass(cls, Control) or key not in PORTS:
                attributes[key] = parse_attribute(scanner, cls._kinds[key])
            else:
                ports[key] = parse_ports(scanner)

        if scanner.sees("{"):
            parse_list(scanner, "{", "}", attribute)
        return attributes, ports

    def _right(self) -> tuple[list[Any] | None, str, list[list[str]], dict[str, Any]]:
        """Take types, name, tensor names and additional info."""
        scanner = self.scanner
        types: list[Any] | None = None
        if scanner.accept(":"):
            types = [parse_type(scanner)]
            while scanner.accept(","):
                types.append(parse_type(scanner))
        name = scanner.string() or ""
        tensor_names: list[list[str]] = []
        if scanner.accept("names"):
            tensor_names.append(self._names())
            while scanner.accept(","):
                tensor_names.append(self._names())
        return types, name, tensor_names, parse_info(scanner) if scanner.accept("info") else {}

    def _names(self) -> list[str]:
        found: list[str] = []
        if self.scanner.accept("_"):
            return found
        while (name := self.scanner.string()) is not None:
            found.append(name)
        return found

    # -- control flow

    def _bodies(self, cls: type[Control], inputs: list[Any], ports: dict[str, Any]) -> dict[str, Names]:
        types = [type_of_tensor(e) if isinstance(e, Tensor) else e.type for e in inputs[cls.first_data_port :]]
        bodies: dict[str, Names] = {}
        for branch, tag in enumerate(BODIES[1:] if cls is If else BODIES[:1]):
            self.scanner.expect(tag)
            body = Graph("" if self.scanner.sees("{") else self.scanner.word_or_string("a name"))
            self.scanner.expect("{")
            bodies[tag] = self.statements(body, fed_types(cls, ports, types, branch))
            self.scanner.expect("}")
        return bodies

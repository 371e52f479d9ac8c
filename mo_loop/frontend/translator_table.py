"""TranslatorTable: which translator a node of a model gets, looked up once for each operator and opset."""

from __future__ import annotations

from collections.abc import Set

from mo_loop.frontend import registry
from mo_loop.frontend.custom_translators import CustomTranslators
from mo_loop.frontend.tolerated_nodes import EXPERIMENTAL, assumed_version, version_read


class TranslatorTable:
    """The translators of one model, whose functions and `custom` translators go before those of this library."""

    def __init__(self, custom: CustomTranslators, functions: Set[tuple[str, str]]) -> None:
        """`functions` are the domains and names of the functions of the model."""
        self._custom = custom
        self._functions = functions
        self._usual: dict[tuple[str, str, int], registry.Translator | None] = {}

    def usual(self, domain: str, op: str, opset: int) -> registry.Translator | None:
        """The translator of this library; None for extensions, functions, and where something has to be assumed."""
        key = (domain, op, opset)
        if key in self._usual:
            return self._usual[key]
        found = None
        is_other = (domain, op) in self._functions or self._custom.find(domain, op, opset)
        if not is_other and registry.qualified(domain, op) not in EXPERIMENTAL:
            found = registry.find(op, opset, domain)
        self._usual[key] = found
        return found

    def assumed(self, domain: str, op: str, opset: int) -> tuple[str, int]:
        """The assumption under which an operator that the opset lacks is read, and the version that is read."""
        if registry.find(op, opset, domain) is None and self._custom.oldest(domain, op) is None:
            version = version_read(op, opset, domain)
            if version is not None:
                return assumed_version(op, opset, domain, version), version
        elif registry.qualified(domain, op) in EXPERIMENTAL:
            return f"{op} is an operator that ONNX did not keep: it is read as it was documented last", opset
        return "", opset

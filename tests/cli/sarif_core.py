"""A JSON schema of the parts of SARIF 2.1.0 that reports use, stricter where the standard allows alternatives."""

from typing import Any


def closed(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """An object with these properties and no others."""
    return {
        "type": "object", "required": list(required), "properties": {**required, **optional},
        "additionalProperties": False,
    }


def items(schema: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": schema, "minItems": least}


TEXT = {"type": "string", "minLength": 1}
CODE = {"type": "string", "pattern": "^ML[2-5][0-9][0-9]$"}
LEVEL = {"enum": ["error", "warning", "note"]}
INDEX = {"type": "integer", "minimum": 0}
MESSAGE = closed({"text": TEXT})
# No backslash, no space, no path out of the folder: a relative URI for every reader.
ARTIFACT = closed({"uri": {"type": "string", "pattern": r"^(file:///|(?!/|\.\./)[^\\ ]+$)"}, "index": INDEX})
PHYSICAL = closed({"artifactLocation": ARTIFACT})
LOGICAL = closed({"name": TEXT, "fullyQualifiedName": TEXT, "kind": {"enum": ["element", "namespace"]}})

RULE = closed(
    {
        "id": CODE, "shortDescription": MESSAGE, "fullDescription": MESSAGE, "help": MESSAGE,
        "defaultConfiguration": closed({"level": LEVEL}),
    }
)
RESULT = closed(
    {
        "ruleId": CODE, "ruleIndex": INDEX, "level": LEVEL, "message": MESSAGE,
        "locations": items(closed({"physicalLocation": PHYSICAL}, logicalLocations=items(LOGICAL, 1)), 1),
        "partialFingerprints": closed({"placeAndMessage/v1": {"type": "string", "pattern": "^[0-9a-f]{32}$"}}),
        "properties": closed({"operator": {"type": "string"}, "scope": {"type": "string"}}),
    }
)
NOTIFICATION = closed(
    {
        "level": LEVEL, "descriptor": closed({"id": CODE}), "message": MESSAGE,
        "locations": items(closed({"physicalLocation": PHYSICAL}), 1),
    }
)
INVOCATION = closed(
    {"executionSuccessful": {"type": "boolean"}, "exitCode": {"enum": [0, 1, 2, 4]}},
    toolExecutionNotifications=items(NOTIFICATION, 1),
)
RUN = closed(
    {
        "tool": closed({"driver": closed({"name": {"const": "mo-loop"}, "version": TEXT, "rules": items(RULE)})}),
        "invocations": items(INVOCATION, 1), "artifacts": items(closed({"location": ARTIFACT})),
        "columnKind": {"const": "unicodeCodePoints"}, "results": items(RESULT),
    }
)
LOG = closed({"$schema": TEXT, "version": {"const": "2.1.0"}, "runs": items(RUN, 1)})

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the types of layers into the JSON Schema of a configuration.

  bazel run //addons/hugectr/python/hugectr/layers:write_schema
"""

import json
import os

from hugectr.layers import network

SCHEMA = "addons/hugectr/python/hugectr/config/schema.json"

_COLUMNS = 100


def _definition(kind):
  """Returns the schema of a layer's clause."""
  name = {"type": "string", "minLength": 1}
  names = {"type": ["string", "array"], "minLength": 1, "minItems": 1, "items": name}
  bottom = dict(names, description="The tensor that it takes.")
  if kind.least_bottoms is not None:
    bottom = {"type": "array", "description": "Tensors that it takes, in order.",
              "minItems": kind.least_bottoms, "items": name}
  own = {
      "name": dict(name, description="Unique among layers; unless given the name of the first "
                   "top."),
      "type": {"const": kind.__name__},
      "bottom": bottom,
      "top": dict(names, description="Names of what it gives."),
  }
  return {
      "type": "object",
      "description": " ".join(kind.__doc__.split()),
      "additionalProperties": False,
      "required": ["type", "bottom", "top"] + list(kind.required),
      "properties": dict(own, **kind.keys),
  }


def with_layers(schema):
  """Returns the schema with all types of layers; new ones come last."""
  definitions = dict(schema["definitions"])
  definitions.update((name, _definition(kind)) for name, kind in network.OF_TYPE.items())
  clause = definitions["layer"]
  types = clause["properties"]["type"]
  names = types["enum"] + [n for n in network.OF_TYPE if n not in types["enum"]]
  definitions["layer"] = dict(
      clause, properties={"type": dict(types, enum=names)},
      allOf=[{"if": {"properties": {"type": {"const": name}}},
              "then": {"$ref": "#/definitions/" + name}} for name in names])
  return dict(schema, definitions=definitions)


def text(value, indent=0):
  """Returns JSON, in which what fits into a line is not broken."""
  whole = json.dumps(value, ensure_ascii=False)
  if not isinstance(value, (dict, list)) or len(whole) + indent < _COLUMNS:
    return whole
  space = "\n" + " " * (indent + 1)
  if isinstance(value, list):
    return "[" + ",".join(space + text(v, indent + 1) for v in value) + space[:-1] + "]"
  return "{" + ",".join("%s%s: %s" % (space, json.dumps(k), text(v, indent + 1))
                        for k, v in value.items()) + space[:-1] + "}"


if __name__ == "__main__":
  path = os.path.join(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ""), SCHEMA)
  with open(path, encoding="utf-8") as f:
    found = with_layers(json.load(f))
  with open(path, "w", encoding="utf-8") as f:
    f.write(text(found) + "\n")

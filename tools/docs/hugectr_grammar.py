# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the grammar of HugeCTR's JSON into its pages, from the schema.

  bazel run //tools/docs:hugectr_grammar
"""

import json
import os
import sys
import textwrap

PAGE = "docs/hugectr_json.md"
# Page -> its first type of layer; it has those up to the next page's.
LAYERS = {
    "docs/hugectr_json_inputs.md": "Data",
    "docs/hugectr_json_layers.md": "InnerProduct",
    "docs/hugectr_json_more_layers.md": "Add",
}
SCHEMA = "addons/hugectr/python/hugectr/config/schema.json"
COMMAND = "bazel run //tools/docs:hugectr_grammar"

_BEGIN = "<!-- grammar: begin (written by %s) -->\n" % COMMAND
_END = "<!-- grammar: end -->\n"

_COLUMNS = 118


def _limits(schema):
  words = []
  for key, word in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"),
                    ("exclusiveMaximum", "<")):
    if key in schema:
      words.append("%s %s" % (word, schema[key]))
  return (" " + ", ".join(words)) if words else ""


def kind(schema):
  """Returns a description of the values that a schema allows."""
  if "$ref" in schema:
    name = schema["$ref"].rpartition("/")[2]
    return "[%s](%s#%s)" % (name, os.path.basename(PAGE),
                            "layers" if name == "layer" else name)
  if "enum" in schema:
    return ", ".join("`%s`" % json.dumps(v) for v in schema["enum"])
  if "const" in schema:
    return "`%s`" % json.dumps(schema["const"])
  types = schema.get("type")
  types = types if isinstance(types, list) else [types]
  words = []
  for name in types:
    if name == "array":
      items = schema.get("items", {})
      # Objects in a list are described on lines of their own.
      inner = "objects" if "properties" in items else kind(items)
      words.append("list of %s" % inner)
    else:
      words.append(name + (_limits(schema) if name in ("integer", "number") else ""))
  return " or ".join(words)


def _lines(schema, prefix=""):
  """Returns a table's lines, one per key, followed by the lines of nested objects."""
  lines = []
  for key, child in schema["properties"].items():
    if key in ("name", "type") and not prefix and "const" in schema["properties"].get(
        "type", {}):
      continue
    needed = "yes" if key in schema.get("required", ()) else ""
    default = "`%s`" % json.dumps(child["default"]) if "default" in child else ""
    lines.append("| `%s%s` | %s | %s | %s | %s |" % (
        prefix, key, kind(child), needed, default, child.get("description", "")))
    inner = child.get("items", {}) if child.get("type") == "array" else child
    if "properties" in inner:
      lines += _lines(inner, "%s%s%s." % (
          prefix, key, "[]" if child.get("type") == "array" else ""))
  return lines


def _table(title, schema):
  lines = ["#### %s" % title, ""]
  if "description" in schema:
    lines += textwrap.wrap(schema["description"], _COLUMNS) + [""]
  rows = _lines(schema)
  if rows:
    lines += ["| key | value | needed | default | meaning |", "| --- | --- | --- | --- | --- |"]
    lines += rows + [""]
  return lines


def _layers(schema):
  """Returns {type of layer: its page}."""
  found, page = {}, None
  first = {name: path for path, name in LAYERS.items()}
  for name in schema["definitions"]["layer"]["properties"]["type"]["enum"]:
    page = first.get(name, page)
    found[name] = page
  return found


def _clauses(schema):
  """Returns the lines of the whole file, of its clauses, and of links to the layers."""
  lines = ["### The whole", ""] + _table("configuration", schema)
  lines += ["### Clauses", ""]
  for name, child in schema["definitions"].items():
    if name not in _layers(schema) and name != "layer":
      lines += _table(name, child)
  lines += ["### Layers", ""]
  for path in LAYERS:
    links = ["[%s](%s#%s)" % (name, os.path.basename(page), name.lower())
             for name, page in _layers(schema).items() if page == path]
    lines += textwrap.wrap("- %s" % ", ".join(links), _COLUMNS, subsequent_indent="  ",
                           break_long_words=False, break_on_hyphens=False)
  return lines


def _of_layers(schema, names):
  """Returns the lines of a section per layer."""
  definitions = schema["definitions"]
  common = {key: definitions["ReLU"]["properties"][key] for key in ("name", "bottom", "top")}
  lines = ["| key | value | meaning |", "| --- | --- | --- |"]
  lines += ["| `%s` | %s | %s |" % (key, kind(child), child["description"])
            for key, child in common.items()]
  lines += ["| `type` | title of the section | What the layer does. |", ""]
  for name in names:
    clause = definitions[name]
    own = {k: v for k, v in clause["properties"].items() if common.get(k) != v}
    lines += _table(name, dict(clause, properties=own))
  return lines[:-1]


def pages(schema):
  """Returns {path: lines of the grammar}."""
  found, layers = {PAGE: _clauses(schema)}, _layers(schema)
  for path in LAYERS:
    found[path] = _of_layers(schema, [name for name, page in layers.items() if page == path])
  return found


def with_grammar(page, lines):
  """Returns a page's text with the grammar between its markers.

  Raises:
    ValueError: the page does not have each marker once and in order.
  """
  before, begin, rest = page.partition(_BEGIN)
  _, end, after = rest.partition(_END)
  if not begin or not end or _BEGIN in rest or _END in after:
    raise ValueError("a page must have these lines once: %s and %s" % (_BEGIN, _END))
  return before + begin + "\n" + "\n".join(lines) + "\n\n" + end + after


def main():
  root = os.environ.get("BUILD_WORKSPACE_DIRECTORY") or os.getcwd()
  with open(os.path.join(root, SCHEMA), encoding="utf-8") as f:
    found = pages(json.load(f))
  for name, lines in found.items():
    path = os.path.join(root, name)
    with open(path, encoding="utf-8") as f:
      page = f.read()
    with open(path, "w", encoding="utf-8") as f:
      f.write(with_grammar(page, lines))
    print("wrote the grammar into %s" % name)


if __name__ == "__main__":
  sys.exit(main())

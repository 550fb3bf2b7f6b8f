# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks JSON values against a JSON Schema (draft 7), and locates mistakes.

Supports only the keywords of schema.json and raises an error for others: type, enum,
const, required, properties, additionalProperties (false), items (one schema), minItems,
maxItems, minLength, pattern, minimum, maximum, exclusiveMinimum, exclusiveMaximum, $ref
(into #/definitions), allOf, if/then. Descriptive keywords are ignored.
"""

import difflib
import json
import numbers
import os
import re

_FOR_READERS = {"$schema", "title", "description", "default", "definitions"}

_TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "number": lambda v: isinstance(v, numbers.Real) and not isinstance(v, bool),
    # Stricter than the draft: 8.0 is not an integer.
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
}

_ARTICLES = {"object": "an object", "array": "a list", "string": "a string",
             "boolean": "true or false", "number": "a number",
             "integer": "an integer"}


def load_schema():
  """Returns the published schema of a configuration, a dict."""
  path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schema.json")
  with open(path) as f:
    return json.load(f)


def shown(value):
  """Returns a JSON value as shown in an error, at most 60 characters."""
  text = json.dumps(value)
  return text if len(text) <= 60 else text[:57] + "..."


def suggestion(name, known):
  """Returns "; did you mean 'x'?" with the closest valid name, or ""."""
  near = difflib.get_close_matches(str(name), [str(k) for k in known], 1)
  return "; did you mean '%s'?" % near[0] if near else ""


def _equal(a, b):
  """Returns whether two JSON values are equal; true is not equal to 1."""
  return a == b and isinstance(a, bool) == isinstance(b, bool)


class _Check(object):
  """One check of a value; collects mistakes in order."""

  def __init__(self, schema):
    self._definitions = schema.get("definitions", {})
    self.mistakes = []

  def report(self, path, sentence):
    self.mistakes.append("%s: %s" % (path or "configuration", sentence))

  def value(self, value, schema, path):
    """Records the mistakes of a value at a path."""
    if "$ref" in schema:
      name = schema["$ref"][len("#/definitions/"):]
      self.value(value, self._definitions[name], path)
      return
    unknown = set(schema) - _FOR_READERS - set(_KEYWORDS) - {"then"}
    if unknown:
      raise ValueError("the schema has keywords that are not known: %s" %
                       ", ".join(sorted(unknown)))
    before = len(self.mistakes)
    # A value of the wrong type fails all other checks too; report only the type.
    for keyword in _KEYWORDS:
      if keyword in schema and len(self.mistakes) == before:
        getattr(self, "_" + keyword)(value, schema[keyword], path, schema)

  def _type(self, value, types, path, _):
    types = types if isinstance(types, list) else [types]
    if not any(_TYPES[t](value) for t in types):
      self.report(path, "expected %s, got %s" % (
          " or ".join(_ARTICLES[t] for t in types), shown(value)))

  def _enum(self, value, values, path, _):
    if not any(_equal(value, v) for v in values):
      self.report(path, "expected one of %s, got %s%s" % (
          ", ".join(shown(v) for v in values), shown(value),
          suggestion(value, values) if isinstance(value, str) else ""))

  def _const(self, value, expected, path, _):
    if not _equal(value, expected):
      self.report(path, "expected %s, got %s" % (shown(expected), shown(value)))

  def _properties(self, value, properties, path, schema):
    if not isinstance(value, dict):
      return
    if schema.get("additionalProperties", True) is False:
      for key in value:
        if key not in properties:
          self.report(_join(path, key), "no such key%s" % (
              suggestion(key, [k for k in properties if k not in value]) or
              "; valid keys: %s" % ", ".join(sorted(properties))))
    for key in schema.get("required", ()):
      if key not in value:
        self.report(path, "'%s' is missing" % key)
    for key, child in properties.items():
      if key in value:
        self.value(value[key], child, _join(path, key))

  def _required(self, value, keys, path, schema):
    if isinstance(value, dict) and "properties" not in schema:
      for key in keys:
        if key not in value:
          self.report(path, "'%s' is missing" % key)

  def _additionalProperties(self, value, allowed, path, schema):  # pylint: disable=invalid-name
    if allowed is not False or "properties" not in schema:
      raise ValueError("additionalProperties: expected false, beside properties")

  def _items(self, value, child, path, _):
    if isinstance(value, list):
      for k, item in enumerate(value):
        self.value(item, child, _item_path(path, k, item))

  def _minItems(self, value, least, path, _):  # pylint: disable=invalid-name
    if isinstance(value, list) and len(value) < least:
      self.report(path, "expected a list of at least %d, got %d" % (least, len(value)))

  def _maxItems(self, value, most, path, _):  # pylint: disable=invalid-name
    if isinstance(value, list) and len(value) > most:
      self.report(path, "expected a list of at most %d, got %d" % (most, len(value)))

  def _minLength(self, value, least, path, _):  # pylint: disable=invalid-name
    if isinstance(value, str) and len(value) < least:
      self.report(path, "expected a string of at least %d characters, got %s" %
                  (least, shown(value)))

  def _pattern(self, value, pattern, path, _):
    if isinstance(value, str) and not re.search(pattern, value):
      self.report(path, "expected a string like %s, got %s" % (pattern, shown(value)))

  def _number(self, value, holds, path, words):
    if _TYPES["number"](value) and not holds:
      self.report(path, "expected a number %s, got %s" % (words, shown(value)))

  def _minimum(self, value, limit, path, _):
    self._number(value, _TYPES["number"](value) and value >= limit, path,
                 "of at least %s" % limit)

  def _maximum(self, value, limit, path, _):
    self._number(value, _TYPES["number"](value) and value <= limit, path,
                 "of at most %s" % limit)

  def _exclusiveMinimum(self, value, limit, path, _):  # pylint: disable=invalid-name
    self._number(value, _TYPES["number"](value) and value > limit, path,
                 "above %s" % limit)

  def _exclusiveMaximum(self, value, limit, path, _):  # pylint: disable=invalid-name
    self._number(value, _TYPES["number"](value) and value < limit, path,
                 "below %s" % limit)

  def _allOf(self, value, schemas, path, _):  # pylint: disable=invalid-name
    for schema in schemas:
      self.value(value, schema, path)

  def _if(self, value, condition, path, schema):
    trial = _Check({"definitions": self._definitions})
    trial.value(value, condition, path)
    if not trial.mistakes:
      self.value(value, schema["then"], path)


# In order of application.
_KEYWORDS = ("type", "const", "enum", "required", "additionalProperties", "properties",
             "minItems", "maxItems", "items", "minLength", "pattern", "minimum",
             "maximum", "exclusiveMinimum", "exclusiveMaximum", "allOf", "if")


def _join(path, key):
  return "%s.%s" % (path, key) if path else key


def _item_path(path, k, item):
  """Returns the path of a list's item, with its name if it has one."""
  where = "%s[%d]" % (path, k)
  name = item.get("name") if isinstance(item, dict) else None
  return "%s ('%s')" % (where, name) if isinstance(name, str) else where


def mistakes(value, schema, path=""):
  """Returns the mistakes of a JSON value, as strings with the path first.

  Args:
    value: result of `json.load`.
    schema: dict, a JSON Schema that uses only the keywords above.
    path: string, the value's path.

  Returns:
    List of strings, empty if there is no mistake. Only the first mistake of each value
      is reported.
  """
  check = _Check(schema)
  check.value(value, schema, path)
  return check.mistakes

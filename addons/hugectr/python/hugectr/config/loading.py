# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads a configuration file."""

import json
import re
import unicodedata

from hugectr.config import errors
from hugectr.config import schema_check

# A string, or white space and a comma between the last item of a list or object and its
# end.
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\s,:\[{])(\s*),(?=\s*[\]}])', re.DOTALL)


def _without_trailing_commas(text):
  """Replaces each comma after the last item of a list or object by a blank."""
  return _STRING_OR_COMMA.sub(
      lambda found: found.group(0) if found.group(1) is None else found.group(1) + " ", text)


def _no_duplicates(pairs):
  found = {}
  for key, value in pairs:
    if key in found:
      raise ValueError("the key '%s' occurs twice in one object" % key)
    found[key] = value
  return found


def _no_constant(name):
  raise ValueError("%s is not a number in JSON" % name)


def _check_text(value, path):
  """Raises ConfigError for a string that cannot be encoded."""
  if isinstance(value, str):
    try:
      value.encode("utf-8")
    except UnicodeEncodeError:
      raise errors.ConfigError("%s: not JSON: the string %s has half of a surrogate pair" %
                               (path, schema_check.shown(value)))
  elif isinstance(value, dict):
    for key in value:
      _check_text(key, path)
      _check_text(value[key], path)
  elif isinstance(value, list):
    for item in value:
      _check_text(item, path)


def _came(text, at):
  """Returns ", got '\uff0c' (U+FF0C, FULLWIDTH COMMA)" for a non-ASCII character, else "".

  Such a character may look like JSON punctuation.
  """
  if at >= len(text) or ord(text[at]) < 128:
    return ""
  return ", got '%s' (U+%04X, %s)" % (text[at], ord(text[at]),
                                      unicodedata.name(text[at], "without a name"))


def read_json(path):
  """Returns the content of a JSON file in UTF-8.

  The file may start with a byte-order mark, and a comma may follow the last item of a
  list or object.

  Args:
    path: string.

  Raises:
    ConfigError: the file cannot be read or is not JSON; the text names line and column.
  """
  try:
    with open(path, "rb") as f:
      read = f.read()
    text = read.decode("utf-8-sig")
  except OSError as e:
    raise errors.ConfigError("%s: cannot be read: %s" % (path, e))
  except UnicodeDecodeError as e:
    # e.object is the text given to the decoder, without the byte-order mark.
    raise errors.ConfigError(
        "%s: line %d: the byte \\x%02x is not UTF-8; save the file in the encoding UTF-8" %
        (path, e.object.count(b"\n", 0, e.start) + 1, e.object[e.start]))
  try:
    found = json.loads(_without_trailing_commas(text), object_pairs_hook=_no_duplicates,
                       parse_constant=_no_constant)
    _check_text(found, path)
    return found
  except errors.ConfigError:
    raise
  except json.JSONDecodeError as e:
    raise errors.ConfigError("%s: line %d, column %d: not JSON: %s%s" %
                             (path, e.lineno, e.colno, e.msg, _came(text, e.pos)))
  except ValueError as e:
    raise errors.ConfigError("%s: not JSON: %s" % (path, e))
  except RecursionError:
    raise errors.ConfigError("%s: not JSON: nested too deeply" % path)


def layers_of(path, where, written_by=""):
  """Returns the layers of a model's JSON file, a list of dicts; the first is the data's.

  Args:
    path: string.
    where: string that starts the error.
    written_by: string that ends the error.

  Raises:
    ConfigError: the file cannot be read, or has no such list.
  """
  found = read_json(path)
  layers = found.get("layers") if isinstance(found, dict) else None
  if not isinstance(layers, list) or not layers or not all(
      isinstance(layer, dict) for layer in layers) or layers[0].get("type") != "Data":
    raise errors.ConfigError("%s: expected {\"layers\": [...]} whose first layer is of type "
                             "Data%s" % (where, written_by))
  return layers


def check(configuration, where):
  """Checks a configuration against the schema.

  Args:
    configuration: result of `read_json`.
    where: string, prefix of each mistake: the file's path.

  Raises:
    ConfigError: one line per mistake.
  """
  found = schema_check.mistakes(configuration, schema_check.load_schema())
  if found:
    raise errors.ConfigError(["%s: %s" % (where, line) for line in found])


def check_layer(clause, number, where):
  """Checks the clause of one layer against the schema.

  Args:
    clause: dict.
    number: int, its position in `layers`.
    where: string, prefix of each mistake.

  Raises:
    ConfigError: one line per mistake.
  """
  schema = schema_check.load_schema()
  name = clause.get("name", clause.get("top"))
  path = "layers[%d]%s" % (number, " ('%s')" % name if isinstance(name, str) else "")
  found = schema_check.mistakes(
      clause, {"$ref": "#/definitions/layer", "definitions": schema["definitions"]}, path)
  if found:
    raise errors.ConfigError(["%s: %s" % (where, line) for line in found])

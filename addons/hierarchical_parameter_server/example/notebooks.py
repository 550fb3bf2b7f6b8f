# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the examples as notebooks whose cells contain the program's text.

  python addons/hierarchical_parameter_server/example/notebooks.py

The first cell is the docstring. Then come imports and flags, and a cell per function;
the last cell runs main.
"""

import ast
import json
import os

NAMES = ("basic_workflow", "sok_training_to_inference", "pretrained_embeddings")

_RUN = "FLAGS([\"notebook\"])\nmain([])"


def cells(source):
  """Returns the cells of a program as (kind, text), kind being "markdown" or "code"."""
  module = ast.parse(source)
  lines = source.splitlines()
  begins = [node.lineno - 1 for node in module.body
            if isinstance(node, (ast.FunctionDef, ast.If))]
  prose = ast.get_docstring(module)
  # In Python 3.7 a docstring node has the line number of its end.
  body = next(node.lineno - 1 for node in module.body
              if isinstance(node, (ast.Import, ast.ImportFrom)))
  title, _, rest = prose.partition("\n")
  found = [("markdown", "# %s\n%s" % (title.rstrip("."), rest))]
  for begin, end in zip([body] + begins, begins):
    found.append(("code", "\n".join(lines[begin:end]).strip()))
  return found + [("code", _RUN)]


def notebook(source):
  """Returns a notebook of a program as text."""
  def cell(kind, text):
    made = {"cell_type": kind, "metadata": {}, "source": text.splitlines(True)}
    if kind == "code":
      made.update(execution_count=None, outputs=[])
    return made

  return json.dumps({
      "cells": [cell(kind, text) for kind, text in cells(source)],
      "metadata": {
          "kernelspec": {"display_name": "Python 3", "language": "python",
                         "name": "python3"},
          "language_info": {"name": "python"},
      },
      "nbformat": 4,
      "nbformat_minor": 2,
  }, indent=1, sort_keys=True) + "\n"


def main():
  folder = os.path.dirname(os.path.abspath(__file__))
  for name in NAMES:
    with open(os.path.join(folder, name + ".py")) as f:
      text = notebook(f.read())
    with open(os.path.join(folder, name + ".ipynb"), "w") as f:
      f.write(text)


if __name__ == "__main__":
  main()

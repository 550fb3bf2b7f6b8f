# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests `check` on damaged configurations: it must print an error, never a traceback."""

import contextlib
import copy
import glob
import io
import json
import os
import random

from absl.testing import absltest
from absl.testing import parameterized
# Imported first: on a new machine it builds a list of fonts and prints a message.
from matplotlib import font_manager  # pylint: disable=unused-import

from hugectr.commands import main

_EXAMPLES = "addons/hugectr/example/*.json"
_EACH = 60

_VALUES = (None, True, False, -1, 0, 1, 1.5, -0.0, 1e308, 10 ** 30, "", "x", "keys", "a\nb",
           "\ud800", "\u540d", "$x^", "<&>", "%s", "../x", [], [[]], [None], {}, {"a": 1})


def _places(value):
  """Yields every (container, key) of a JSON value."""
  for key in list(value if isinstance(value, dict) else range(len(value))):
    yield value, key
    if isinstance(value[key], (dict, list)):
      yield from _places(value[key])


def _missing(rng, found):
  holder, key = rng.choice([p for p in _places(found) if isinstance(p[0], dict)])
  del holder[key]


def _misspelt(rng, found):
  holder, key = rng.choice([p for p in _places(found) if isinstance(p[0], dict)])
  at = rng.randrange(len(key) + 1)
  value = holder.pop(key)
  holder[rng.choice((key[:at] + key[at + 1:], key[:at] + "_" + key[at:], key.swapcase()))] = (
      value)


def _wrong_value(rng, found):
  holder, key = rng.choice(list(_places(found)))
  holder[key] = copy.deepcopy(rng.choice(_VALUES))


def _moved(rng, found):
  layers = found["layers"]
  layers.insert(rng.randrange(len(layers)), layers.pop(rng.randrange(len(layers))))


def _doubled(rng, found):
  layers = found["layers"]
  layers.insert(rng.randrange(len(layers)), copy.deepcopy(rng.choice(layers)))


def _dense_layers(found):
  return [l for l in found["layers"][1:] if "Embedding" not in l["type"]]


def _with_bottom(layer, position, name):
  bottoms = layer["bottom"] if isinstance(layer["bottom"], list) else [layer["bottom"]]
  bottoms[position % len(bottoms)] = name
  layer["bottom"] = bottoms if len(bottoms) > 1 else bottoms[0]


def _cycle(rng, found):
  layers = _dense_layers(found)
  first = rng.randrange(len(layers))
  later = layers[rng.randrange(first, len(layers))]["top"]
  _with_bottom(layers[first], rng.randrange(2),
               later if isinstance(later, str) else rng.choice(later))


def _unknown_bottom(rng, found):
  layer = rng.choice(_dense_layers(found))
  _with_bottom(layer, rng.randrange(2), "no_such_tensor")


_WAYS = {"missing": _missing, "misspelt": _misspelt, "wrong_value": _wrong_value,
         "moved": _moved, "doubled": _doubled, "cycle": _cycle,
         "unknown_bottom": _unknown_bottom}

# Ways that make every configuration wrong, and a part of the error.
_ALWAYS_WRONG = {"cycle": "a layer must follow those whose tensors it takes, without cycles",
                 "unknown_bottom": "there is no tensor 'no_such_tensor'"}


class FuzzedCheckTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.texts = []
    for path in sorted(glob.glob(_EXAMPLES)):
      with open(path) as f:
        self.texts.append(f.read())
    self.assertLen(self.texts, 5)

  def check(self, data, plot=None):
    """Returns (status, standard error) of `check` for a file with these bytes."""
    path = os.path.join(self.folder, "f.json")
    with open(path, "wb") as f:
      f.write(data)
    out, error = io.StringIO(), io.StringIO()
    argv = ["check", path] + (["--plot", plot] if plot else [])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
      status = main.main(argv)
    error = error.getvalue()
    self.assertIn(status, (0, 2), data)
    if status == 0:
      self.assertEqual(error, "")
      self.assertIn("layer", out.getvalue())
    else:
      self.assertEqual(out.getvalue(), "")
      self.assertNotEmpty(error)
      for line in error[:-1].split("\n"):
        self.assertStartsWith(line, "error: %s: " % path)
        self.assertRegex(line[len("error: %s: " % path):], r"\w+.* .*\w", data)
      self.assertNotIn("Traceback", error)
    return status, error

  @parameterized.parameters(sorted(_WAYS))
  def test_a_damaged_configuration(self, way):
    rng = random.Random("check " + way)
    wrong = 0
    for k in range(_EACH):
      found = json.loads(self.texts[k % len(self.texts)])
      for _ in range(1 if way in _ALWAYS_WRONG else rng.choice((1, 1, 2))):
        _WAYS[way](rng, found)
      plot = os.path.join(self.folder, "f.svg") if k % 4 == 0 else None
      status, error = self.check(json.dumps(found).encode(), plot)
      wrong += status == 2
      if way in _ALWAYS_WRONG:
        self.assertIn(_ALWAYS_WRONG[way], error)
    self.assertGreaterEqual(wrong, _EACH if way in _ALWAYS_WRONG else _EACH // 4)

  def test_damaged_bytes(self):
    rng = random.Random("bytes")
    wrong = 0
    for k in range(_EACH):
      data = bytearray(self.texts[k % len(self.texts)].encode())
      kind = rng.randrange(3)
      if kind == 0:
        del data[rng.randrange(len(data)):]
      elif kind == 1:
        for _ in range(rng.choice((1, 4))):
          data[rng.randrange(len(data))] = rng.randrange(256)
      else:
        at = rng.randrange(len(data))
        data[at:at] = bytes(rng.randrange(256) for _ in range(3))
      wrong += self.check(bytes(data))[0] == 2
    self.assertGreater(wrong, _EACH // 2)

  @parameterized.parameters(("a\nb", 0, r"('a\nb', MultiCross).bottom: there is no"),
                            ("\u540d", 0, "('\u540d', MultiCross).bottom: there is no"),
                            ("\ud800", 2, r'string "\ud800" has half of a surrogate pair'))
  def test_names_of_any_letters(self, name, status, expected):
    found = json.loads(self.texts[1])
    layer = next(l for l in found["layers"] if l["type"] == "MultiCross")
    layer["name"] = name
    for end in ("svg", "png"):
      plot = os.path.join(self.folder, "f." + end)
      self.assertEqual(self.check(json.dumps(found).encode(), plot)[0], status)
    layer["bottom"] = "no_such_tensor"
    self.assertIn(expected, self.check(json.dumps(found).encode())[1])

  @parameterized.parameters(b"", b"null", b"[]", b"{}", b"3", b'"x"', b"[" * 50000,
                            b'{"layers": ' * 5000, b"{\"layers\": [{}], \"optimizer\": 1}",
                            b"\xef\xbb\xbf{}", b"\x00")
  def test_what_is_no_configuration(self, data):
    self.assertEqual(self.check(data)[0], 2)


if __name__ == "__main__":
  absltest.main()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The commands of the systemd unit and of the container file are the server's."""

import json
import os
import re

from absl.testing import absltest

from embedding_variable_serving import flags

_HERE = os.path.dirname(os.path.abspath(__file__))
_COMMAND = ["-m", "embedding_variable", "serve"]


def _text(name):
  with open(os.path.join(_HERE, name)) as f:
    return f.read().replace("\\\n", " ")


class ExampleTest(absltest.TestCase):

  def test_the_unit(self):
    words = re.search(r"^ExecStart=(.*)$", _text("serving.service"), re.M).group(1).split()
    self.assertEqual(words[1:4], _COMMAND)
    args = flags.parse(words[4:])
    self.assertEqual((args.model_base_path, args.rest_api_port), ("/srv/models/ranking", 8501))
    limit = int(re.search(r"^TimeoutStopSec=(\d+)$", _text("serving.service"), re.M).group(1))
    self.assertGreater(limit, args.drain_seconds + 10)

  def test_the_container(self):
    text = _text("Containerfile")
    words = [json.loads(re.search(r"^%s (.*)$" % name, text, re.M).group(1))
             for name in ("ENTRYPOINT", "CMD")]
    self.assertEqual(words[0][1:4], _COMMAND)
    args = flags.parse(words[0][4:] + words[1])
    self.assertEqual((args.model_base_path, args.bind_address), ("/models", "0.0.0.0"))
    ports = re.search(r"^EXPOSE (\d+) (\d+)$", text, re.M).groups()
    self.assertEqual(ports, (str(args.port), str(args.rest_api_port)))


if __name__ == "__main__":
  absltest.main()

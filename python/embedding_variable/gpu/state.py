# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The state of a set-up, stored as JSON, and the check that it is still valid."""

import json
import os

from embedding_variable.checkpoint_format import durable
from embedding_variable.gpu import errors

_FORMAT = 1
_AGAIN = ("Run `python -m embedding_variable.gpu setup %s` again; what was compiled for "
          "other drivers and GPUs is kept.")


def describe(build, driver, cuda):
  """Returns the facts on which a set-up depends.

  Args:
    build: tensorflow_build.Build.
    driver: driver.Driver.
    cuda: cuda_libraries.Cuda.

  Returns:
    dict that JSON can represent.
  """
  return {
      "format": _FORMAT,
      "tensorflow": {"version": build.version, "folder": build.folder},
      "driver": driver.version,
      "driver_cuda": "%d.%d" % driver.cuda,
      "gpus": [{"name": g.name, "capability": "%d.%d" % divmod(g.capability, 10),
                "memory": g.memory} for g in driver.gpus],
      "cuda": {"version": cuda.version, "place": cuda.place},
  }


def write(path, facts):
  """Writes the facts atomically."""
  with durable.replaced(path) as part, open(part, "w") as f:
    json.dump(facts, f, indent=2, sort_keys=True)
    f.write("\n")


def read(places):
  """Returns the facts of a set-up.

  Args:
    places: places.Places.

  Raises:
    GpuError: there is no set-up, or its state cannot be read.
  """
  try:
    with open(places.state) as f:
      facts = json.load(f)
  except OSError:
    raise errors.GpuError(
        "%s holds no finished set-up. Run `python -m embedding_variable.gpu setup %s`." %
        (places.top, places.top))
  except ValueError as e:
    raise errors.GpuError("%s cannot be read: %s. %s" %
                          (places.state, e, _AGAIN % places.top))
  if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
    raise errors.GpuError("%s was written by another version. %s" %
                          (places.state, _AGAIN % places.top))
  return facts


def check(facts, driver, places):
  """Raises GpuError unless the driver and the GPUs are those of the set-up.

  Args:
    facts: the result of read().
    driver: driver.Driver, as it is now.
    places: places.Places.

  Raises:
    GpuError: the message has both versions and what to do.
  """
  if facts["driver"] != driver.version:
    raise errors.GpuError(
        "set up for driver %s, this machine has driver %s: all kernels would be compiled "
        "anew at the first step. %s" %
        (facts["driver"], driver.version, _AGAIN % places.top))
  known = {g["name"] for g in facts["gpus"]}
  for gpu in driver.gpus:
    if gpu.name not in known:
      raise errors.GpuError(
          "set up for %s, this machine has %s: all kernels would be compiled anew at the "
          "first step. %s" % (", ".join(sorted(known)), gpu.name, _AGAIN % places.top))
  for name in ("lib", "cache"):
    if not os.path.isdir(os.path.join(places.top, name)):
      raise errors.GpuError("%s has lost its folder %s. %s" %
                            (places.top, name, _AGAIN % places.top))
  lost = [n for n in sorted(os.listdir(places.libraries))
          if not os.path.exists(os.path.join(places.libraries, n))]
  if lost:
    raise errors.GpuError(
        "%s leads to %s, which is gone (CUDA was removed or updated). %s" %
        (os.path.join(places.libraries, lost[0]),
         os.readlink(os.path.join(places.libraries, lost[0])), _AGAIN % places.top))

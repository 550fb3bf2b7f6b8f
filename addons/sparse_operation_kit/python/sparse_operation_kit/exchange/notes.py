# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Notes that a rank leaves for all others to read, without a collective.

horovodrun, unless it uses MPI, stores short strings by which its ranks find each other.
This module stores notes there. So a rank can check what another rank does before it
waits for it in a collective that the other may never join.
"""

import os
import urllib.error
import urllib.request

from embedding_variable.tf_names import tf

from sparse_operation_kit import communication

_ADDRESS = "HOROVOD_GLOO_RENDEZVOUS_ADDR"
_PORT = "HOROVOD_GLOO_RENDEZVOUS_PORT"
_SCOPE = "sparse_operation_kit"
_SECONDS = 5.

# Without a proxy: the environment's proxy is for the internet, not for horovodrun.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def leave(key, text):
  """Stores a note; replaces the previous note of this rank under that key.

  Args:
    key: string of letters.
    text: string.
  """
  url = _url(key, communication.rank())
  if url is None:
    return
  request = urllib.request.Request(url, text.encode("utf-8"), method="PUT")
  try:
    _open(request, timeout=_SECONDS).close()
  except OSError as e:
    tf.compat.v1.logging.debug("sok: horovodrun keeps no notes: %s", e)


def read(key):
  """Returns the latest notes as a list by rank; None for a rank without one.

  Returns:
    None if no launcher stores notes.
  """
  said = []
  for rank in range(communication.num_ranks()):
    url = _url(key, rank)
    if url is None:
      return None
    try:
      with _open(url, timeout=_SECONDS) as answer:
        said.append(answer.read().decode("utf-8"))
    except urllib.error.HTTPError as e:
      if e.code != 404:
        return None
      said.append(None)
    except OSError:
      return None
  return said


def _url(key, rank):
  address, port = os.environ.get(_ADDRESS), os.environ.get(_PORT)
  if not address or not port:
    return None
  return "http://%s:%s/%s/%s.%d" % (address, port, _SCOPE, key, rank)

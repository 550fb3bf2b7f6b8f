# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prepares this process for a script that was written for DeepRec."""

from embedding_variable.deeprec import notices
from embedding_variable.deeprec import work_queue
from embedding_variable.deeprec.patches import modules_patch
from embedding_variable.deeprec.patches import names_patch
from embedding_variable.deeprec.patches import server_patch
from embedding_variable.deeprec.patches import session_options_patch
from embedding_variable.deeprec.patches import sessions_patch
from embedding_variable.deeprec.patches import variable_scope_patch
from embedding_variable.deeprec.patches import version_patch


def activate(version, is_quiet=False, at_most_once=False, share_work=False):
  """Installs all stand-ins, for the rest of the process. The launcher's function.

  Args:
    version: string, the version of TensorFlow that pkg_resources reports.
    is_quiet: bool; True: no line is printed about what is replaced or ignored.
    at_most_once: bool, the default of `WorkQueue`.
    share_work: bool, the default of `WorkQueue`'s argument `ranks`.
  """
  if not is_quiet:
    notices.enable()
  work_queue.set_default_at_most_once(at_most_once)
  work_queue.set_default_ranks(share_work)
  version_patch.install(version)
  server_patch.install()
  session_options_patch.install()
  variable_scope_patch.install()
  names_patch.install()
  modules_patch.install()
  sessions_patch.install()

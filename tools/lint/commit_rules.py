# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules for the subjects of commits: imperative, short, no full stop."""

import re
import subprocess

# Commits up to this one were made before the rules.
_FIRST = "934a0e87cd518f75aab6b7f4e6c768ca3ae1a17d"

MAX_COLUMNS = 72

_CAPITAL = re.compile(r"[A-Z][a-z-]*$")
_NOT_IMPERATIVE = re.compile(r"(The|An|A|.*ed|.*ing|.*[^s]s)$")
# Verbs that end like another form.
_VERBS = ("Bring", "Embed", "Feed", "Focus", "Need", "Seed", "Shed", "Speed", "String")


def subject_violations(subject):
  """Returns what is wrong with one subject, a line each."""
  found = []
  if len(subject) > MAX_COLUMNS:
    found.append("%d columns, at most %d" % (len(subject), MAX_COLUMNS))
  verb = subject.split(" ")[0]
  if not _CAPITAL.match(verb) or (_NOT_IMPERATIVE.match(verb) and verb not in _VERBS):
    found.append("does not begin with an imperative verb")
  if subject.endswith("."):
    found.append("ends in a full stop")
  return found


def new_subjects(root="."):
  """Returns the subjects of commits since the rules; none in a tree without history."""
  done = subprocess.run(
      ["git", "-c", "safe.directory=*", "log", "--format=%s", _FIRST + "..HEAD"],
      cwd=root,
      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
  return done.stdout.splitlines() if done.returncode == 0 else []


def violations(root="."):
  """Returns a line for each breach in the subjects of new commits."""
  return ["commit '%s': %s" % (subject, what) for subject in new_subjects(root)
          for what in subject_violations(subject)]

#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of a Python 3.7: $PYTHON, else one on the PATH, else one of pyenv or uv.
# With --install, pyenv or uv installs one if there is none. Without it, $PYTHON may be a
# newer one, which has TensorFlow 2.x.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Prints the real interpreter behind a command, such as a pyenv shim, if it is a 3.7.
python37() {
  "$1" -c 'import os, sys
if sys.version_info[:2] != (3, 7): sys.exit(1)
import ensurepip, venv
print(sys.executable)' 2>/dev/null </dev/null
}

# Prints the interpreter behind a command if it is a Python 3 from 3.7 on.
newer_python() {
  "$1" -c 'import sys
if sys.version_info < (3, 7): sys.exit(1)
print(sys.executable)' 2>/dev/null </dev/null
}

if [[ -n "${PYTHON:-}" ]]; then
  python37 "${PYTHON}" && exit 0
  [[ "${1:-}" != --install ]] && newer_python "${PYTHON}" && exit 0
  die "\$PYTHON is '${PYTHON}', which is not a working Python 3.7 with venv" \
    "(TensorFlow 1.15 has no wheel for a newer one): point it at a python3.7," \
    "or unset it."
fi

find_pyenv() {
  local pyenv root
  for pyenv in pyenv "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}/bin/pyenv"; do
    if root="$("${pyenv}" root 2>/dev/null)"; then
      printf '%s\n%s\n' "${pyenv}" "${root}"
      return
    fi
  done
  return 1
}

python37 python3.7 && exit 0
python37 python3 && exit 0

pyenv_path="" pyenv_root=""
if found="$(find_pyenv)"; then
  pyenv_path="$(head -n 1 <<<"${found}")"
  pyenv_root="$(tail -n 1 <<<"${found}")"
  for python in "${pyenv_root}"/versions/3.7*/bin/python3.7; do
    [[ -x "${python}" ]] && python37 "${python}" && exit 0
  done
fi

# Prints the path of uv's Python 3.7.
uvs_python() {
  local python
  python="$("$1" python find 3.7 2>/dev/null)" && python37 "${python}"
}

for uv in uv "${HOME:-/nonexistent}/.local/bin/uv" .build/uv/bin/uv; do
  uvs_python "${uv}" && exit 0
done

missing="No Python 3.7 was found"
hint="install one with 'pyenv install 3.7.17', or with uv 0.5's 'uv python install 3.7', or set PYTHON to its path"
[[ "${1:-}" == --install ]] || die "${missing}: ${hint}."

mkdir -p .build
uv_install() {
  "$1" python install 3.7 >>.build/uv.log 2>&1 </dev/null && uvs_python "$1"
}

if command -v uv >/dev/null; then
  say "installing Python 3.7 with uv"
  uv_install uv && exit 0
fi
if [[ -n "${pyenv_path}" ]]; then
  say "installing Python 3.7.17 with pyenv (a few minutes)"
  if "${pyenv_path}" install -s 3.7.17 >.build/pyenv.log 2>&1; then
    python37 "${pyenv_root}/versions/3.7.17/bin/python3.7" && exit 0
  fi
fi
# Newer versions no longer offer Python 3.7.
for python in python3 python; do
  if "${python}" -m venv .build/uv >>.build/uv.log 2>&1 </dev/null &&
    .build/uv/bin/pip install -q uv==0.5.31 >>.build/uv.log 2>&1 </dev/null; then
    say "installing Python 3.7 with a separate uv"
    uv_install .build/uv/bin/uv && exit 0
    break
  fi
done
die "${missing} and none could be installed: ${hint}."

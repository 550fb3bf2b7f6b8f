#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes .build/tf-VERSION, an environment with TensorFlow 2.x beside .venv, and writes its
# bazelrc. It can be run again and does only what is missing. Args: VERSION, such as 2.15.
#
# $PYTHON is the interpreter to use; otherwise one with a wheel of that TensorFlow is
# looked for on the PATH and among pyenv's.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tools/setup/common.sh

version="$1"
requirements="tools/setup/tensorflow_pins/${version}.txt"
environment=".build/tf-${version}"
# The Python for which the pinned packages were chosen.
readonly versions=python/embedding_variable/tensorflow_versions.json
wanted="$(sed -n "s/^  \"${version//./\\.}\":.*\"set_up_with\": \"\([0-9.]*\)\".*/\1/p" "${versions}")"
[[ -n "${wanted}" && -f "${requirements}" ]] ||
  die "TF is '${version}': expected one of" \
    "$(sed -n 's/^  "\(2[0-9.]*\)".*/\1/p' "${versions}" | paste -sd ' ')" \
    "(make demo and make wheel without TF are for 1.15)."

# Prints the interpreter behind a command if it has the wanted version.
matching() {
  "$1" -c "import ensurepip, sys, venv
if '%d.%d' % sys.version_info[:2] != '${wanted}': sys.exit(1)
print(sys.executable)" 2>/dev/null </dev/null
}

find_interpreter() {
  local python
  if [[ -n "${PYTHON:-}" ]]; then
    matching "${PYTHON}" && return
    die "\$PYTHON is '${PYTHON}', which is not a working Python ${wanted} with venv:" \
      "TensorFlow ${version} is set up with that version; or unset it."
  fi
  for python in "python${wanted}" \
    "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}/versions/${wanted}".*"/bin/python${wanted}"; do
    matching "${python}" && return
  done
  die "No Python ${wanted} was found for TensorFlow ${version}: install one, for example" \
    "with 'pyenv install ${wanted}', or set PYTHON to its path."
}

mkdir -p .build
if ! cmp -s "${requirements}" "${environment}/installed.txt"; then
  python="$(find_interpreter)"
  say "making ${environment} with ${python} (TensorFlow ${version} and its dependencies)"
  [[ -x "${environment}/bin/python" ]] || "${python}" -m venv "${environment}" ||
    die "${python} cannot make a virtual environment: install its venv module."
  logged ".build/pip-${version}.log" \
    "pip could not install TensorFlow ${version}: is the network (or the package index) available?" \
    "${environment}/bin/python" -m pip --disable-pip-version-check --no-input install \
    --no-deps -r "${requirements}"
  # Tests are written for TensorFlow 1.15; with EV_TEST_V1=1 they run on 2.x.
  site="$("${environment}/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
  printf 'import os, sys; os.environ.get("EV_TEST_V1") == "1" and (%s, %s, %s)\n' \
    "sys.path.append('${PWD}/tools/testing')" "__import__('v1_tensorflow').enable()" \
    "sys.path.pop()" >"${site}/v1_tensorflow.pth"
  cp "${requirements}" "${environment}/installed.txt"
fi
"${environment}/bin/python" tools/setup/configure.py --output "${environment}/bazelrc"

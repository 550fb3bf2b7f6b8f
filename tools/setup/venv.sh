#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes .venv with the pinned requirements. Args: a Python 3.7 to make it from, and
# "build" (packages that the product needs) or "all" (also those of tests and lint, and
# Horovod).

set -euo pipefail
here="$(dirname "${BASH_SOURCE[0]}")"
source "${here}/common.sh"

python="$1"
part="$2"
wheels=.build/wheels
network="is the network (or the package index) available?"
mkdir -p .build "${wheels}"

# An incomplete .venv, or one whose interpreter is gone, is made again.
if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  rm -rf .venv
  "${python}" -m venv .venv || die "${python} cannot make a virtual environment:" \
    "install its venv module, or set PYTHON to another Python 3.7."
fi

pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input "$@"; }

say "installing the pinned packages into .venv (TensorFlow 1.15.5 and its dependencies)"
logged .build/pip.log "pip could not install its pinned self: ${network}" \
  pip install -r "${here}/requirements-bootstrap.txt"
requirements=(-r "${here}/requirements.txt")
[[ "${part}" == build ]] || requirements+=(-r "${here}/requirements-dev.txt")
logged .build/pip.log "pip could not install TensorFlow and the other pinned packages: ${network}" \
  pip install --no-deps "${requirements[@]}"
if [[ "${part}" == build ]]; then
  logged .build/pip.log "the packages in .venv do not fit together" pip check
  exit 0
fi

# Horovod's setup.py imports TensorFlow, so it is compiled in .venv. The wheel is kept for
# the next .venv.
pin="$(grep '^horovod==' "${here}/requirements-horovod.txt")"
logged .build/pip.log "pip could not install what Horovod needs: ${network}" \
  pip install --no-deps -r <(grep -v '^horovod==' "${here}/requirements-horovod.txt")
if ! compgen -G "${wheels}/${pin/==/-}-*.whl" >/dev/null; then
  say "compiling Horovod with Gloo (about two minutes)"
  # Without pip's cache, which has one wheel for each Python: it may have been compiled for
  # another TensorFlow.
  logged .build/horovod.log "Horovod could not be compiled" \
    env PATH="${PWD}/.venv/bin:${PATH}" CC=gcc CXX="${PWD}/tools/setup/cxx_without_debug.sh" \
    HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_CPU_OPERATIONS=GLOO \
    HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 \
    HOROVOD_WITHOUT_GPU=1 MAKEFLAGS="-j$(nproc)" \
    .venv/bin/python -m pip wheel --disable-pip-version-check --no-input \
    --no-cache-dir --no-deps --no-build-isolation --no-binary horovod -w "${wheels}" \
    "${pin}"
fi
logged .build/pip.log "the compiled Horovod could not be installed" \
  pip install --no-deps --force-reinstall "${wheels}/${pin/==/-}"-*.whl
logged .build/pip.log "the packages in .venv do not fit together" pip check

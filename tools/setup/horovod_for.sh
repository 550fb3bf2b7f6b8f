#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Compiles Horovod with Gloo for the TensorFlow of .build/tf-VERSION and installs it there.
# The wheel is kept for the next environment. Args: VERSION, such as 2.15.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tools/setup/common.sh

version="$1"
requirements="tools/setup/tensorflow_pins/horovod-${version}.txt"
environment="${PWD}/.build/tf-${version}"
wheels="${PWD}/.build/wheels-${version}"
pip_log=".build/pip-${version}.log"
network="is the network (or the package index) available?"
[[ -f "${requirements}" ]] || die "There is no Horovod for TensorFlow '${version}'."
[[ -f "${environment}/installed.txt" ]] ||
  die "There is no .build/tf-${version}: run tools/setup/other_tensorflow.sh ${version} first."
if cmp -s "${requirements}" "${environment}/horovod.txt"; then
  exit 0
fi

pip() { "${environment}/bin/python" -m pip --disable-pip-version-check --no-input "$@"; }

pin="$(grep '^horovod==' "${requirements}")"
logged "${pip_log}" "pip could not install what Horovod needs: ${network}" \
  pip install --no-deps -r <(grep -v '^horovod==' "${requirements}")
mkdir -p "${wheels}"
if ! compgen -G "${wheels}/${pin/==/-}-*.whl" >/dev/null; then
  say "compiling Horovod with Gloo for TensorFlow ${version} (some minutes)"
  source_of_horovod="${pin}"
  if [[ "${version}" == 2.21 ]]; then
    # Its ops for XLA include headers that TensorFlow 2.21 has moved. They are an option for
    # collectives in XLA's clusters on GPUs, and nothing else uses them.
    sources="${PWD}/.build/horovod-${version}"
    rm -rf "${sources}" && mkdir -p "${sources}"
    logged "${pip_log}" "pip could not fetch Horovod's sources: ${network}" \
      pip download --no-deps --no-build-isolation --no-binary horovod -d "${sources}" "${pin}"
    tar -xzf "${sources}/${pin/==/-}.tar.gz" -C "${sources}"
    source_of_horovod="${sources}/${pin/==/-}"
    sed -i '/xla_mpi_ops\.cc/d' "${source_of_horovod}/horovod/tensorflow/CMakeLists.txt"
  fi
  # Without pip's cache, which has one wheel for each Python: it may have been compiled for
  # another TensorFlow.
  logged ".build/horovod-${version}.log" "Horovod could not be compiled" \
    env PATH="${environment}/bin:${PATH}" CC=gcc CXX="${PWD}/tools/setup/cxx_without_debug.sh" \
    HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_CPU_OPERATIONS=GLOO \
    HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 \
    HOROVOD_WITHOUT_GPU=1 MAKEFLAGS="-j$(nproc)" \
    "${environment}/bin/python" -m pip wheel --disable-pip-version-check --no-input \
    --no-cache-dir --no-deps --no-build-isolation --no-binary horovod -w "${wheels}" \
    "${source_of_horovod}"
fi
logged "${pip_log}" "the compiled Horovod could not be installed" \
  pip install --no-deps --force-reinstall "${wheels}/${pin/==/-}"-*.whl
cp "${requirements}" "${environment}/horovod.txt"
# Bazel runs tests again whose packages have changed.
"${environment}/bin/python" tools/setup/configure.py --output "${environment}/bazelrc"

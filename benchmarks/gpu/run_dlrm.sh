#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# DLRM on 1 and 2 GPUs of one host, a rank and a GPU of TensorFlow's for each, every rank
# with as many samples: weak scaling. Run from the repository's root where the wheel, a
# TensorFlow that has GPUs and Horovod are installed for $PYTHON:
#
#   benchmarks/gpu/run_dlrm.sh [RANKS]...
#
# No argument: 1 2, as far as there are GPUs. A rank has $THREADS threads (as many as its
# share of the processors, when all GPUs have one). $BATCHES (default "16384 65536") are
# samples per rank, $DIM (128) floats a row, $EXCHANGES (nccl) carry lookups. $IDS says
# where ids are (here, in CPU memory; "here fetched there": in turn, and the last lines say
# whether the losses agree; dlrm_ranks.py has what the words mean). $POLICIES ("none
# counter step_evict": in turn) say what tables note of their rows (policies.py). $FLAGS are
# more flags: FLAGS=--interaction=matmul has TensorFlow make the dot products. With TF32=1
# products of float32 may be taken in TF32. "scaling" is one rank's time over this one's.
# "sparse" and "dense" are steps of lookups alone, and of the model with pooled rows
# replaced by constants; together they may take longer than the whole, where they run
# beside each other.
set -u -o pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-.build/gpu_dlrm}
mkdir -p "$out"
python=${PYTHON:-.venv/bin/python}
gpus=$(nvidia-smi -L | wc -l)
threads=${THREADS:-$(($(nproc) / (gpus > 0 ? gpus : 1)))}
if [[ ${TF32:-} == 1 ]]; then export NVIDIA_TF32_OVERRIDE=1; fi
: >"$out/gpu_dlrm.json"

for batch in ${BATCHES:-16384 65536}; do
  for ranks in ${*:-1 2}; do
    if ((ranks > gpus)); then
      echo "skipped: $ranks ranks, this machine has $gpus GPUs"
      continue
    fi
    for exchange in ${EXCHANGES:-nccl}; do
      for ids in ${IDS:-here}; do
        for policy in ${POLICIES:-none}; do
          timeout "${LIMIT_S:-200}" $python -m horovod.runner.launch -np "$ranks" \
            -H "localhost:$ranks" $python benchmarks/dlrm_ranks.py --batch="$batch" \
            --dim="${DIM:-128}" --exchange="$exchange" --threads="$threads" \
            --ids="$ids" --policy="$policy" --steps="${STEPS:-30}" ${FLAGS:-} \
            >"$out/stdout.txt" 2>"$out/stderr.txt" || {
              echo "failed: $ranks ranks, batch $batch, $exchange, ids $ids, $policy"
              grep -h "Error" "$out/stdout.txt" "$out/stderr.txt" | tail -5
              tail -5 "$out/stderr.txt"
            }
          sed 's/^\[[0-9]*\]<stdout>://' "$out/stdout.txt" | grep '^{' \
            >>"$out/gpu_dlrm.json"
        done
      done
      # One rank exchanges nothing.
      if ((ranks == 1)); then break; fi
    done
  done
done
$python benchmarks/dlrm_ranks_table.py "$out/gpu_dlrm.json"
echo "$threads threads for each rank, TF32: ${TF32:-0}"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sort -u

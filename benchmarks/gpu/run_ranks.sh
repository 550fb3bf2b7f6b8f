#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# The same training step on 1, 2, 4, ... GPUs of one host, a rank for each. Run from
# the repository's root where the wheel is installed for $PYTHON:
#
#   benchmarks/gpu/run_ranks.sh [RANKS]...
#
# No argument: 1 2 4, as far as there are GPUs. A rank has $THREADS threads (as many as
# its share of the processors, when all GPUs have one). $EXCHANGES (default "nccl memory
# horovod") carry the lookups. A rank has $BATCH samples (65536) of $HOT ids (1), rows of
# $DIM floats (16). "scaling" is one rank's time over this one's: each rank has as much
# to do as the one.
set -u -o pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-.build/gpu_ranks}
mkdir -p "$out"
python=${PYTHON:-.venv/bin/python}
gpus=$(nvidia-smi -L | wc -l)
threads=${THREADS:-$(($(nproc) / gpus))}
: >"$out/gpu_ranks.json"
for ranks in ${*:-1 2 4}; do
  if ((ranks > gpus)); then
    echo "skipped: $ranks ranks, this machine has $gpus GPUs"
    continue
  fi
  for exchange in ${EXCHANGES:-nccl memory horovod}; do
    # One rank exchanges nothing.
    if ((ranks == 1)); then exchange=horovod; fi
    timeout "${LIMIT_S:-120}" $python -m horovod.runner.launch -np "$ranks" \
      -H "localhost:$ranks" $python benchmarks/exchange_worker.py --storage=hbm \
      --exchange="$exchange" --threads="$threads" --batch="${BATCH:-65536}" --dim="${DIM:-16}" \
      --hotness="${HOT:-1}" --steps="${STEPS:-12}" --warmup_steps=5 \
      --profiled_steps="${PROFILED_STEPS:-0}" \
      >"$out/stdout.txt" 2>"$out/stderr.txt" || {
        echo "failed: $ranks ranks, $exchange"
        tail -5 "$out/stderr.txt"
        continue
      }
    sed 's/^\[[0-9]*\]<stdout>://' "$out/stdout.txt" | grep -v '^{'
    sed 's/^\[[0-9]*\]<stdout>://' "$out/stdout.txt" | grep '^{' \
      | sed "s/^{/{\"ranks\": $ranks, \"exchange\": \"$exchange\", /" \
        >>"$out/gpu_ranks.json"
    if ((ranks == 1)); then break; fi
  done
done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sort -u
echo "$threads threads for each rank"
$python - "$out/gpu_ranks.json" <<'PYTHON'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
one = [r['step_ms'] for r in rows if r['ranks'] == 1]
print('| GPUs | carried by | step ms | scaling | MB sent | core-ms |')
print('| --- | --- | --- | --- | --- | --- |')
for r in rows:
  print('| %d | %s | %.1f | %s | %.1f | %.0f |' % (
      r['ranks'], r['exchange'] if r['ranks'] > 1 else '–', r['step_ms'],
      '%.0f %%' % (100 * one[0] / r['step_ms']) if one else '–',
      r['bytes'] / 1e6, r['core_ms']))
PYTHON

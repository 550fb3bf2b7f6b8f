#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Measures training steps in tf.Session with rows in GPU memory and in CPU memory. Run it
# from the repository's root on a machine with a GPU and the wheel installed for $PYTHON:
#
#   benchmarks/gpu/run_session.sh [DIM:HOT:DISTRIBUTION]...
#
# Without arguments: the rows of benchmarks/results/gpu_session.md. $STORAGES ("hbm dram")
# are the storages, $THREADS the threads of one op (0: the number of processors). Prints
# one line per measurement; the last block is the table. "link" is the time that copying
# the pooled rows and then their gradients takes at the card's pinned copy rate of
# GB_PER_S (default 55.3).
set -u -o pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-.build/gpu_session}
mkdir -p "$out"
python=${PYTHON:-.venv/bin/python}
cases=${*:-16:1:zipf 16:1:uniform 64:1:zipf 16:10:zipf}
: >"$out/gpu_session.json"
for c in $cases; do
  IFS=: read -r dim hot distribution <<<"$c"
  for storage in ${STORAGES:-hbm dram}; do
    $python benchmarks/stock_vs_ev.py --variant=ev_sok --storage=$storage \
      --distribution="$distribution" --hotness="$hot" --dim="$dim" \
      --threads="${THREADS:-0}" --batch="${BATCH:-65536}" --rows="${ROWS:-2000000}" --num_batches=6 \
      --warmup_steps=3 --min_steps="${STEPS:-10}" --min_seconds=1 \
      2>"$out/stderr.txt" | tail -1 >"$out/one.json" \
      || { tail -5 "$out/stderr.txt"; exit 1; }
    sed "s/^{/{\"storage\": \"$storage\", \"dim\": $dim, /" "$out/one.json" \
      | tee -a "$out/gpu_session.json" | cut -c1-400
  done
done
$python - "$out/gpu_session.json" "${GB_PER_S:-55.3}" <<'PYTHON'
import json, sys
rate = float(sys.argv[2]) * 1e6  # bytes per ms
print('| case | rows in | forward ms | step ms | link ms | step / link |')
print('| --- | --- | --- | --- | --- | --- |')
for line in open(sys.argv[1]):
  r = json.loads(line)
  down = r['batch'] * r['tables'] * r['dim'] * 4 / rate
  on_gpu = r['storage'] == 'hbm'
  print('| %s | %s | %.1f | %.1f | %s | %s |' % (
      r['workload'], 'GPU' if on_gpu else 'CPU', r['forward']['median_ms'],
      r['step']['median_ms'], '%.2f' % (2 * down) if on_gpu else '',
      '%.1f' % (r['step']['median_ms'] / (2 * down)) if on_gpu else ''))
PYTHON

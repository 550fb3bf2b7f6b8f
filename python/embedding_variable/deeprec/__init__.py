# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for DeepRec's subsystems on stock TensorFlow 1.15.

  python -m embedding_variable.deeprec train.py --batch_size=512

runs a script that was written for DeepRec. The modules of this package are usable
without the launcher too, for example `embedding_variable.deeprec.work_queue.WorkQueue`.
Importing this package changes nothing.
"""

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of tables: dump and load, checkpoints of all ranks."""

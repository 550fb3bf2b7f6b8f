# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the stand-ins for DeepRec replace in stock TensorFlow, one subject per file."""

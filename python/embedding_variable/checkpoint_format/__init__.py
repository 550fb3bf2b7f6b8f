# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of checkpoints and tables; needs TensorFlow and numpy, and no op library.

Wheels that do not depend on each other ship this package in their own packages, in the
source tree by a link. So its modules import each other relatively.
"""

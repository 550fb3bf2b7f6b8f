# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Like test_device.py, but TensorFlow also has a stand-in for a GPU."""

import os

import stand_in

stand_in.use(os.path.join(os.path.dirname(os.path.abspath(__file__)), "on_gpu"))

if __name__ == "__main__":
  stand_in.run()

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Publishes a model from training: full versions, and deltas between them.

  publisher = embedding_variable.publish.Publisher("/models/ranking", serving_graph)
  hook = embedding_variable.publish.PublishHook(publisher, every_steps=100)
  with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
    ...

In eager execution and with Keras:

  publisher = embedding_variable.publish.EagerPublisher("/models/ranking", model)
  callback = embedding_variable.publish.PublishCallback(publisher, every_steps=100)
  model.fit(data, callbacks=[callback])
"""

from embedding_variable.publish.eager_publisher import EagerPublisher
from embedding_variable.publish.hook import PublishHook
from embedding_variable.publish.keras_callback import PublishCallback
from embedding_variable.publish.loading import load
from embedding_variable.publish.publisher import Publisher

# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The enumerations of scripts. The empty member is `Non`."""

import enum

from hugectr.layers import network


class _Named(enum.Enum):
  """Members print as `Layer_t.ReLU`."""

  def __repr__(self):
    return str(self)


def _enum(name, members):
  """Returns an enumeration whose values count from 0."""
  return _Named(name, [(m, k) for k, m in enumerate(members.split())], module=__name__)


# pylint: disable=invalid-name
Activation_t = _enum("Activation_t", "Relu Non")
Alignment_t = _enum("Alignment_t", "Auto Non")
AllReduceAlgo = _enum("AllReduceAlgo", "OneShot NCCL")
Check_t = _enum("Check_t", "Sum Non")
CommunicationStrategy = _enum("CommunicationStrategy", "Uniform Hierarchical")
CommunicationType = _enum("CommunicationType", "IB_NVLink_Hier IB_NVLink NVLink_SingleNode")
CompressionStrategy = _enum("CompressionStrategy", "Reduction Unique")
DataReaderSparse_t = _enum("DataReaderSparse_t", "Distributed Localized")
DataReaderType_t = _enum("DataReaderType_t", "Norm Raw Parquet RawAsync")
DatabaseOverflowPolicy_t = _enum("DatabaseOverflowPolicy_t",
                                 "EvictRandom EvictLeastUsed EvictOldest")
DatabaseType_t = _enum("DatabaseType_t", "Disabled HashMap ParallelHashMap "
                       "MultiProcessHashMap RedisCluster RocksDB")
DeviceLayout = _enum("DeviceLayout", "LocalFirst NodeFirst")
Distribution_t = _enum("Distribution_t", "Uniform PowerLaw")
Embedding_t = _enum("Embedding_t", "DistributedSlotSparseEmbeddingHash "
                    "LocalizedSlotSparseEmbeddingHash LocalizedSlotSparseEmbeddingOneHot "
                    "HybridSparseEmbedding")
Error_t = _enum("Error_t", "Success FileCannotOpen BrokenFile OutOfMemory OutOfBound "
                "WrongInput IllegalCall NotInitialized UnSupportedFormat InvalidEnv MpiError "
                "CublasError CudnnError CudaError CudaDriverError CudaRuntimeError NcclError "
                "DataCheckError UnspecificError EndOfFile")
FcPosition_t = _enum("FcPosition_t", "Non Head Body Tail Isolated")
FileSystemType_t = _enum("FileSystemType_t", "Local HDFS S3 GCS Other")
DataSourceType_t = FileSystemType_t
GroupLayer_t = _enum("GroupLayer_t", "GroupFusedInnerProduct")
HybridEmbeddingType = _enum("HybridEmbeddingType", "Distributed")
Initializer_t = _enum("Initializer_t", "Default Uniform XavierNorm XavierUniform Zero")
Layer_t = _enum("Layer_t", " ".join(sorted(
    name for name, kind in network.OF_TYPE.items() if kind.is_in_api)))
LrPolicy_t = _enum("LrPolicy_t", "fixed")
MetricsRawType = _enum("MetricsRawType", "Loss Pred Label")
MetricsType = _enum("MetricsType", "AUC AverageLoss HitRate NDCG SMAPE")
Optimizer_t = _enum("Optimizer_t", "Ftrl Adam RMSProp AdaGrad Nesterov MomentumSGD SGD")
PowerLaw_t = _enum("PowerLaw_t", "Long Medium Short Specific")
Regularizer_t = _enum("Regularizer_t", "L1 L2")
SourceType_t = _enum("SourceType_t", "FileList Mmap Parquet")
Tensor_t = _enum("Tensor_t", "Train Evaluate")
TrainPSType_t = _enum("TrainPSType_t", "Staged Cached")
UpdateSourceType_t = _enum("UpdateSourceType_t", "Null KafkaMessageQueue")
Update_t = _enum("Update_t", "Local Global LazyGlobal")
# pylint: enable=invalid-name

NAMES = sorted(n for n, e in globals().items()
               if isinstance(e, type) and issubclass(e, _Named) and e is not _Named)


def _members():
  """Returns {name: member} of the names that one enumeration alone has."""
  found, twice = {}, set()
  for kind in (globals()[name] for name in NAMES):
    for name, member in kind.__members__.items():
      if name in found:
        twice.add(name)
      found[name] = member
  return {name: member for name, member in found.items() if name not in twice}


# Members that are attributes of the package too.
MEMBERS = _members()


def check(where, name, value, kind):
  """Returns a member's name.

  Args:
    where: string, the call, for the error.
    name: string, the argument.
    value: a member of `kind`.
    kind: an enumeration.

  Raises:
    TypeError: it is something else.
  """
  if not isinstance(value, kind):
    raise TypeError("%s: %s: expected a member of hugectr.%s (%s), got %r" % (
        where, name, kind.__name__, ", ".join(kind.__members__), value))
  return value.name

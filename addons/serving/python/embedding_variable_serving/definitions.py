# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Field numbers of the messages of the interfaces, written from their public descriptions.

A message is a string of fields "[repeated] TYPE NAME = NUMBER", separated by ";". A type
without a dot is in the same package. "one GROUP: F | G" makes the fields F and G a oneof.
An enum is a string of values "NAME = NUMBER".
"""

_STATUS_CODES = (
    "OK = 0; CANCELLED = 1; UNKNOWN = 2; INVALID_ARGUMENT = 3; DEADLINE_EXCEEDED = 4; "
    "NOT_FOUND = 5; ALREADY_EXISTS = 6; PERMISSION_DENIED = 7; RESOURCE_EXHAUSTED = 8; "
    "FAILED_PRECONDITION = 9; ABORTED = 10; OUT_OF_RANGE = 11; UNIMPLEMENTED = 12; "
    "INTERNAL = 13; UNAVAILABLE = 14; DATA_LOSS = 15; UNAUTHENTICATED = 16")

_MODEL = "ModelSpec model_spec = 1"

# Package: {message or enum: fields or values}. An enum is found by its name in ENUMS.
PACKAGES = {
    "tensorflow.serving": {
        "ModelSpec":
            "string name = 1; one version_choice: google.protobuf.Int64Value version = 2"
            " | string version_label = 4; string signature_name = 3",
        "PredictRequest":
            _MODEL + "; map<tensorflow.TensorProto> inputs = 2;"
            "repeated string output_filter = 3",
        "PredictResponse":
            "map<tensorflow.TensorProto> outputs = 1; ModelSpec model_spec = 2",
        "ExampleList": "repeated tensorflow.Example examples = 1",
        "ExampleListWithContext":
            "repeated tensorflow.Example examples = 1; tensorflow.Example context = 2",
        "Input":
            "one kind: ExampleList example_list = 1"
            " | ExampleListWithContext example_list_with_context = 2",
        "Class": "string label = 1; float score = 2",
        "Classifications": "repeated Class classes = 1",
        "ClassificationResult": "repeated Classifications classifications = 1",
        "ClassificationRequest": _MODEL + "; Input input = 2",
        "ClassificationResponse":
            "ClassificationResult result = 1; ModelSpec model_spec = 2",
        "Regression": "float value = 1",
        "RegressionResult": "repeated Regression regressions = 1",
        "RegressionRequest": _MODEL + "; Input input = 2",
        "RegressionResponse": "RegressionResult result = 1; ModelSpec model_spec = 2",
        "InferenceTask": _MODEL + "; string method_name = 2",
        "InferenceResult":
            _MODEL + "; one result: ClassificationResult classification_result = 2"
            " | RegressionResult regression_result = 3",
        "MultiInferenceRequest": "repeated InferenceTask tasks = 1; Input input = 2",
        "MultiInferenceResponse": "repeated InferenceResult results = 1",
        "SignatureDefMap": "map<tensorflow.SignatureDef> signature_def = 1",
        "GetModelMetadataRequest": _MODEL + "; repeated string metadata_field = 2",
        "GetModelMetadataResponse": _MODEL + "; map<google.protobuf.Any> metadata = 2",
        "State":
            "UNKNOWN = 0; START = 10; LOADING = 20; AVAILABLE = 30; UNLOADING = 40;"
            "END = 50",
        "StatusProto": "tensorflow.error.Code error_code = 1; string error_message = 2",
        "GetModelStatusRequest": _MODEL,
        "ModelVersionStatus": "int64 version = 1; State state = 2; StatusProto status = 3",
        "GetModelStatusResponse": "repeated ModelVersionStatus model_version_status = 1",
        "LatestVersions": "uint32 num_versions = 1",
        "AllVersions": "",
        "SpecificVersions": "repeated int64 versions = 1",
        "ServableVersionPolicy":
            "one policy_choice: LatestVersions latest = 100 | AllVersions all = 101"
            " | SpecificVersions specific = 102",
        "ModelConfig":
            "string name = 1; string base_path = 2; int32 model_type = 3;"
            "string model_platform = 4; google.protobuf.Any logging_config = 6;"
            "ServableVersionPolicy model_version_policy = 7;"
            "map<int64> version_labels = 8",
        "ModelConfigList": "repeated ModelConfig config = 1",
        "ModelServerConfig":
            "one config: ModelConfigList model_config_list = 1"
            " | google.protobuf.Any custom_model_config = 2",
        "ReloadConfigRequest": "ModelServerConfig config = 1; repeated string metric_names = 2",
        "Metric": "string name = 1; int64 int64_value_increase = 2",
        "ReloadConfigResponse": "StatusProto status = 1; repeated Metric metric = 2",
        "PrometheusConfig": "bool enable = 1; string path = 2",
        "MonitoringConfig": "PrometheusConfig prometheus_config = 1",
        "SSLConfig":
            "string server_key = 1; string server_cert = 2; string custom_ca = 3;"
            "bool client_verify = 4",
        "BatchingParameters":
            "google.protobuf.Int64Value max_batch_size = 1;"
            "google.protobuf.Int64Value batch_timeout_micros = 2;"
            "google.protobuf.Int64Value max_enqueued_batches = 3;"
            "google.protobuf.Int64Value num_batch_threads = 4;"
            "google.protobuf.StringValue thread_pool_name = 5;"
            "repeated int64 allowed_batch_sizes = 6; bool pad_variable_length_inputs = 7;"
            "google.protobuf.BoolValue enable_large_batch_splitting = 8;"
            "google.protobuf.Int64Value max_execution_batch_size = 9",
        "ClassifyLog": "ClassificationRequest request = 1; ClassificationResponse response = 2",
        "RegressLog": "RegressionRequest request = 1; RegressionResponse response = 2",
        "MultiInferenceLog":
            "MultiInferenceRequest request = 1; MultiInferenceResponse response = 2",
        "PredictLog": "PredictRequest request = 1; PredictResponse response = 2",
        "UnsupportedLog": "",
        "PredictionLog":
            "one log_type: ClassifyLog classify_log = 2 | RegressLog regress_log = 3"
            " | MultiInferenceLog multi_inference_log = 4"
            " | UnsupportedLog session_run_log = 5 | PredictLog predict_log = 6"
            " | UnsupportedLog predict_streamed_log = 7",
    },
    # The Open Inference Protocol, version 2.
    "inference": {
        "Empty": "",
        "BoolAnswer": "bool answer = 1",
        "ModelName": "string name = 1; string version = 2",
        "ServerMetadata": "string name = 1; string version = 2; repeated string extensions = 3",
        "TensorMetadata": "string name = 1; string datatype = 2; repeated int64 shape = 3",
        "ModelMetadata":
            "string name = 1; repeated string versions = 2; string platform = 3;"
            "repeated TensorMetadata inputs = 4; repeated TensorMetadata outputs = 5",
        "Parameter":
            "one kind: bool bool_param = 1 | int64 int64_param = 2 | string string_param = 3"
            " | double double_param = 4 | uint64 uint64_param = 5",
        "Contents":
            "repeated bool bool_contents = 1; repeated int32 int_contents = 2;"
            "repeated int64 int64_contents = 3; repeated uint32 uint_contents = 4;"
            "repeated uint64 uint64_contents = 5; repeated float fp32_contents = 6;"
            "repeated double fp64_contents = 7; repeated bytes bytes_contents = 8",
        "Tensor":
            "string name = 1; string datatype = 2; repeated int64 shape = 3;"
            "map<Parameter> parameters = 4; Contents contents = 5",
        "OutputRequest": "string name = 1; map<Parameter> parameters = 2",
        "ModelInferRequest":
            "string model_name = 1; string model_version = 2; string id = 3;"
            "map<Parameter> parameters = 4; repeated Tensor inputs = 5;"
            "repeated OutputRequest outputs = 6; repeated bytes raw_input_contents = 7",
        "ModelInferResponse":
            "string model_name = 1; string model_version = 2; string id = 3;"
            "map<Parameter> parameters = 4; repeated Tensor outputs = 5;"
            "repeated bytes raw_output_contents = 6",
    },
    "tensorflow.error": {"Code": _STATUS_CODES},
    "grpc.health.v1": {
        "HealthCheckRequest": "string service = 1",
        "ServingStatus": "UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3",
        "HealthCheckResponse": "ServingStatus status = 1",
    },
}

ENUMS = ("tensorflow.serving.State", "tensorflow.error.Code", "grpc.health.v1.ServingStatus")

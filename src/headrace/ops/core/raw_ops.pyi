# Written by tools/make_stubs.py from the registry of operations; do not edit.
"""Operations as functions. Inputs are whatever converts to a tensor."""

from collections.abc import Callable, Iterable
from typing import Any as _Any
from typing import TypeAlias

import numpy as np

from headrace.graph.dtypes import DType
from headrace.graph.shapes import Dimension, TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.registry import OpDef

_Bool: TypeAlias = bool | np.bool_
_Int: TypeAlias = int | np.integer[_Any] | Dimension
_Float: TypeAlias = float | np.floating[_Any]
_Text: TypeAlias = str | bytes
_Type: TypeAlias = DType | np.dtype[_Any] | type[_Any] | str | int
_Shape: TypeAlias = TensorShape | Iterable[int | Dimension | None] | int

class RawOps:
    def __init__(self, apply: Callable[[OpDef, tuple[_Any, ...], dict[str, _Any]], _Any]): ...
    def Abs(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def AccumulateNV2(
        self,
        inputs: _Any,
        *,
        T: _Type | None = None,
        N: _Int | None = None,
        shape: _Shape,
        name: str | None = None,
    ) -> Tensor: ...
    def AccumulatorIsNew(
        self,
        handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def AccumulatorNumAccumulated(
        self,
        handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def AccumulatorSetGlobalStep(
        self,
        handle: _Any,
        new_global_step: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def Acos(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Acosh(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Add(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def AddManySparseToTensorsMap(
        self,
        sparse_indices: _Any,
        sparse_values: _Any,
        sparse_shape: _Any,
        *,
        T: _Type | None = None,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def AddN(
        self,
        inputs: _Any,
        *,
        T: _Type | None = None,
        N: _Int | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def AddSparseToTensorsMap(
        self,
        sparse_indices: _Any,
        sparse_values: _Any,
        sparse_shape: _Any,
        *,
        T: _Type | None = None,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def AddV2(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def AdjustContrastv2(
        self,
        images: _Any,
        contrast_factor: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def AdjustHue(
        self,
        images: _Any,
        delta: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def AdjustSaturation(
        self,
        images: _Any,
        scale: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def All(
        self,
        input: _Any,
        reduction_indices: _Any,
        *,
        keep_dims: _Bool | None = False,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def AllCandidateSampler(
        self,
        true_classes: _Any,
        *,
        num_true: _Int,
        num_sampled: _Int,
        unique: _Bool,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def AllReduceOverDevices(
        self,
        inputs: _Any,
        *,
        T: Iterable[_Type] | None = None,
        replicas: _Int,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def Angle(
        self,
        input: _Any,
        *,
        T: _Type | None = ...,
        Tout: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Any(
        self,
        input: _Any,
        reduction_indices: _Any,
        *,
        keep_dims: _Bool | None = False,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ApproximateEqual(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        tolerance: _Float | None = 1e-05,
        name: str | None = None,
    ) -> Tensor: ...
    def ArgMax(
        self,
        input: _Any,
        dimension: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        output_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ArgMin(
        self,
        input: _Any,
        dimension: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        output_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def AsString(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        precision: _Int | None = -1,
        scientific: _Bool | None = False,
        shortest: _Bool | None = False,
        width: _Int | None = -1,
        fill: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def Asin(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Asinh(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Assert(
        self,
        condition: _Any,
        data: _Any,
        *,
        T: Iterable[_Type] | None = None,
        summarize: _Int | None = 3,
        name: str | None = None,
    ) -> Operation: ...
    def AssertCardinalityDataset(
        self,
        input_dataset: _Any,
        cardinality: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def AssignAddVariableOp(
        self,
        resource: _Any,
        value: _Any,
        *,
        dtype: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def AssignSubVariableOp(
        self,
        resource: _Any,
        value: _Any,
        *,
        dtype: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def AssignVariableOp(
        self,
        resource: _Any,
        value: _Any,
        *,
        dtype: _Type | None = None,
        validate_shape: _Bool | None = False,
        _shape: _Shape | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def Atan(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Atan2(
        self,
        y: _Any,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Atanh(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def AudioSummary(
        self,
        tag: _Any,
        tensor: _Any,
        *,
        sample_rate: _Float,
        max_outputs: _Int | None = 3,
        name: str | None = None,
    ) -> Tensor: ...
    def AudioSummaryV2(
        self,
        tag: _Any,
        tensor: _Any,
        sample_rate: _Any,
        *,
        max_outputs: _Int | None = 3,
        name: str | None = None,
    ) -> Tensor: ...
    def AvgPool(
        self,
        value: _Any,
        *,
        T: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def AvgPool3D(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NDHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def AvgPool3DGrad(
        self,
        orig_input_shape: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NDHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def AvgPoolGrad(
        self,
        orig_input_shape: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def Barrier(
        self,
        *,
        component_types: Iterable[_Type],
        shapes: Iterable[_Shape] | None = (),
        capacity: _Int | None = -1,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def BarrierClose(
        self,
        handle: _Any,
        *,
        cancel_pending_enqueues: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def BarrierIncompleteSize(
        self,
        handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def BarrierInsertMany(
        self,
        handle: _Any,
        keys: _Any,
        values: _Any,
        *,
        T: _Type | None = None,
        component_index: _Int,
        name: str | None = None,
    ) -> Operation: ...
    def BarrierReadySize(
        self,
        handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def BarrierTakeMany(
        self,
        handle: _Any,
        num_elements: _Any,
        *,
        component_types: Iterable[_Type],
        allow_small_batch: _Bool | None = False,
        wait_for_incomplete: _Bool | None = False,
        timeout_ms: _Int | None = -1,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, list[Tensor]]: ...
    def BatchDataset(
        self,
        input_dataset: _Any,
        batch_size: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def BatchDatasetV2(
        self,
        input_dataset: _Any,
        batch_size: _Any,
        drop_remainder: _Any,
        *,
        parallel_copy: _Bool | None = False,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def BatchMatMul(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        adj_x: _Bool | None = False,
        adj_y: _Bool | None = False,
        grad_x: _Bool | None = False,
        grad_y: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def BatchMatMulV2(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        adj_x: _Bool | None = False,
        adj_y: _Bool | None = False,
        grad_x: _Bool | None = False,
        grad_y: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def BatchMatMulV3(
        self,
        x: _Any,
        y: _Any,
        *,
        Ta: _Type | None = None,
        Tb: _Type | None = None,
        Tout: _Type,
        adj_x: _Bool | None = False,
        adj_y: _Bool | None = False,
        grad_x: _Bool | None = False,
        grad_y: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def BatchToSpace(
        self,
        input: _Any,
        crops: _Any,
        *,
        T: _Type | None = None,
        block_size: _Int,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def BatchToSpaceND(
        self,
        input: _Any,
        block_shape: _Any,
        crops: _Any,
        *,
        T: _Type | None = None,
        Tblock_shape: _Type | None = ...,
        Tcrops: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def BesselI0(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def BesselI0e(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def BesselI1(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def BesselI1e(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Betainc(
        self,
        a: _Any,
        b: _Any,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def BiasAdd(
        self,
        value: _Any,
        bias: _Any,
        *,
        T: _Type | None = None,
        data_format: _Text | None = 'NHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def BiasAddGrad(
        self,
        out_backprop: _Any,
        *,
        T: _Type | None = None,
        data_format: _Text | None = 'NHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def BiasAddV1(
        self,
        value: _Any,
        bias: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Bincount(
        self,
        arr: _Any,
        size: _Any,
        weights: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def BipartiteMatch(
        self,
        distance_mat: _Any,
        num_valid_rows: _Any,
        *,
        top_k: _Int | None = -1,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def Bitcast(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        type: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def BitwiseAnd(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def BitwiseOr(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def BitwiseXor(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def BoostedTreesBucketize(
        self,
        float_values: _Any,
        bucket_boundaries: _Any,
        *,
        num_features: _Int | None = None,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def BoostedTreesCalculateBestGainsPerFeature(
        self,
        node_id_range: _Any,
        stats_summary_list: _Any,
        l1: _Any,
        l2: _Any,
        tree_complexity: _Any,
        min_node_weight: _Any,
        *,
        max_splits: _Int,
        num_features: _Int | None = None,
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor]]: ...
    def BoostedTreesCenterBias(
        self,
        tree_ensemble_handle: _Any,
        mean_gradients: _Any,
        mean_hessians: _Any,
        l1: _Any,
        l2: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def BoostedTreesCreateEnsemble(
        self,
        tree_ensemble_handle: _Any,
        stamp_token: _Any,
        tree_ensemble_serialized: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def BoostedTreesCreateQuantileStreamResource(
        self,
        quantile_stream_resource_handle: _Any,
        epsilon: _Any,
        num_streams: _Any,
        *,
        max_elements: _Int | None = 1099511627776,
        name: str | None = None,
    ) -> Operation: ...
    def BoostedTreesDeserializeEnsemble(
        self,
        tree_ensemble_handle: _Any,
        stamp_token: _Any,
        tree_ensemble_serialized: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def BoostedTreesEnsembleResourceHandleOp(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def BoostedTreesExampleDebugOutputs(
        self,
        tree_ensemble_handle: _Any,
        bucketized_features: _Any,
        *,
        num_bucketized_features: _Int | None = None,
        logits_dimension: _Int,
        name: str | None = None,
    ) -> Tensor: ...
    def BoostedTreesFlushQuantileSummaries(
        self,
        quantile_stream_resource_handle: _Any,
        *,
        num_features: _Int,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def BoostedTreesGetEnsembleStates(
        self,
        tree_ensemble_handle: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def BoostedTreesMakeQuantileSummaries(
        self,
        float_values: _Any,
        example_weights: _Any,
        epsilon: _Any,
        *,
        num_features: _Int | None = None,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def BoostedTreesMakeStatsSummary(
        self,
        node_ids: _Any,
        gradients: _Any,
        hessians: _Any,
        bucketized_features_list: _Any,
        *,
        max_splits: _Int,
        num_buckets: _Int,
        num_features: _Int | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def BoostedTreesPredict(
        self,
        tree_ensemble_handle: _Any,
        bucketized_features: _Any,
        *,
        num_bucketized_features: _Int | None = None,
        logits_dimension: _Int,
        name: str | None = None,
    ) -> Tensor: ...
    def BoostedTreesQuantileStreamResourceAddSummaries(
        self,
        quantile_stream_resource_handle: _Any,
        summaries: _Any,
        *,
        num_features: _Int | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def BoostedTreesQuantileStreamResourceDeserialize(
        self,
        quantile_stream_resource_handle: _Any,
        bucket_boundaries: _Any,
        *,
        num_streams: _Int | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def BoostedTreesQuantileStreamResourceFlush(
        self,
        quantile_stream_resource_handle: _Any,
        num_buckets: _Any,
        *,
        generate_quantiles: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def BoostedTreesQuantileStreamResourceGetBucketBoundaries(
        self,
        quantile_stream_resource_handle: _Any,
        *,
        num_features: _Int,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def BoostedTreesQuantileStreamResourceHandleOp(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def BoostedTreesSerializeEnsemble(
        self,
        tree_ensemble_handle: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def BoostedTreesTrainingPredict(
        self,
        tree_ensemble_handle: _Any,
        cached_tree_ids: _Any,
        cached_node_ids: _Any,
        bucketized_features: _Any,
        *,
        num_bucketized_features: _Int | None = None,
        logits_dimension: _Int,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def BoostedTreesUpdateEnsemble(
        self,
        tree_ensemble_handle: _Any,
        feature_ids: _Any,
        node_ids: _Any,
        gains: _Any,
        thresholds: _Any,
        left_node_contribs: _Any,
        right_node_contribs: _Any,
        max_depth: _Any,
        learning_rate: _Any,
        *,
        pruning_mode: _Int,
        num_features: _Int | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def BroadcastArgs(
        self,
        s0: _Any,
        s1: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def BroadcastGradientArgs(
        self,
        s0: _Any,
        s1: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def BroadcastTo(
        self,
        input: _Any,
        shape: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Bucketize(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        boundaries: Iterable[_Float],
        name: str | None = None,
    ) -> Tensor: ...
    def BucketizeWithInputBoundaries(
        self,
        input: _Any,
        boundaries: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def BuildCategoricalEqualitySplits(
        self,
        num_minibatches: _Any,
        partition_ids: _Any,
        feature_ids: _Any,
        gradients: _Any,
        hessians: _Any,
        class_id: _Any,
        feature_column_group_id: _Any,
        bias_feature_id: _Any,
        l1_regularization: _Any,
        l2_regularization: _Any,
        tree_complexity_regularization: _Any,
        min_node_weight: _Any,
        multiclass_strategy: _Any,
        weak_learner_type: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def BuildDenseInequalitySplits(
        self,
        num_minibatches: _Any,
        partition_ids: _Any,
        bucket_ids: _Any,
        gradients: _Any,
        hessians: _Any,
        bucket_boundaries: _Any,
        class_id: _Any,
        feature_column_group_id: _Any,
        l1_regularization: _Any,
        l2_regularization: _Any,
        tree_complexity_regularization: _Any,
        min_node_weight: _Any,
        multiclass_strategy: _Any,
        weak_learner_type: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def BuildSparseInequalitySplits(
        self,
        num_minibatches: _Any,
        partition_ids: _Any,
        bucket_ids: _Any,
        gradients: _Any,
        hessians: _Any,
        bucket_boundaries: _Any,
        class_id: _Any,
        feature_column_group_id: _Any,
        bias_feature_id: _Any,
        l1_regularization: _Any,
        l2_regularization: _Any,
        tree_complexity_regularization: _Any,
        min_node_weight: _Any,
        multiclass_strategy: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def BytesProducedStatsDataset(
        self,
        input_dataset: _Any,
        tag: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def CSVDataset(
        self,
        filenames: _Any,
        compression_type: _Any,
        buffer_size: _Any,
        header: _Any,
        field_delim: _Any,
        use_quote_delim: _Any,
        na_value: _Any,
        select_cols: _Any,
        record_defaults: _Any,
        *,
        output_types: Iterable[_Type] | None = None,
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def CTCBeamSearchDecoder(
        self,
        inputs: _Any,
        sequence_length: _Any,
        *,
        beam_width: _Int,
        top_paths: _Int,
        merge_repeated: _Bool | None = True,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], Tensor]: ...
    def CTCGreedyDecoder(
        self,
        inputs: _Any,
        sequence_length: _Any,
        *,
        merge_repeated: _Bool | None = False,
        blank_index: _Int | None = -1,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
    def CTCLoss(
        self,
        inputs: _Any,
        labels_indices: _Any,
        labels_values: _Any,
        sequence_length: _Any,
        *,
        preprocess_collapse_repeated: _Bool | None = False,
        ctc_merge_repeated: _Bool | None = True,
        ignore_longer_outputs_than_inputs: _Bool | None = False,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def CacheDataset(
        self,
        input_dataset: _Any,
        filename: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Case(
        self,
        branch_index: _Any,
        input: _Any,
        *,
        Tin: Iterable[_Type] | None = None,
        Tout: Iterable[_Type],
        branches: Iterable[_Any],
        output_shapes: Iterable[_Shape] | None = (),
        _saved: Iterable[_Text] | None = (),
        _Tsaved: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def Cast(
        self,
        x: _Any,
        *,
        SrcT: _Type | None = None,
        DstT: _Type,
        Truncate: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def Ceil(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def CenterTreeEnsembleBias(
        self,
        tree_ensemble_handle: _Any,
        stamp_token: _Any,
        next_stamp_token: _Any,
        delta_updates: _Any,
        *,
        learner_config: _Text,
        centering_epsilon: _Float | None = 0.009999999776482582,
        name: str | None = None,
    ) -> Tensor: ...
    def CheckNumerics(
        self,
        tensor: _Any,
        *,
        T: _Type | None = None,
        message: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def ChiefLease(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def ChiefLeaseRequest(
        self,
        handle: _Any,
        value: _Any,
        *,
        request: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def Cholesky(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def CholeskyGrad(
        self,
        l: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ClipByValue(
        self,
        t: _Any,
        clip_value_min: _Any,
        clip_value_max: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def CloseSummaryWriter(
        self,
        writer: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def CollectiveBcastRecv(
        self,
        *,
        T: _Type,
        group_size: _Int,
        group_key: _Int,
        instance_key: _Int,
        shape: _Shape,
        communication_hint: _Text | None = 'auto',
        name: str | None = None,
    ) -> Tensor: ...
    def CollectiveBcastSend(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        group_size: _Int,
        group_key: _Int,
        instance_key: _Int,
        shape: _Shape,
        communication_hint: _Text | None = 'auto',
        name: str | None = None,
    ) -> Tensor: ...
    def CollectiveBeginAnew(
        self,
        *,
        group_size: _Int,
        group_key: _Int,
        name: str | None = None,
    ) -> Operation: ...
    def CollectiveGather(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        group_size: _Int,
        group_key: _Int,
        instance_key: _Int,
        shape: _Shape,
        communication_hint: _Text | None = 'auto',
        name: str | None = None,
    ) -> Tensor: ...
    def CollectiveGatherSlices(
        self,
        values: _Any,
        indices: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        group_size: _Int,
        group_key: _Int,
        instance_key: _Int,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def CollectiveReduce(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        group_size: _Int,
        group_key: _Int,
        instance_key: _Int,
        merge_op: _Text,
        final_op: _Text,
        subdiv_offsets: Iterable[_Int],
        wait_for: Iterable[_Int] | None = (),
        communication_hint: _Text | None = 'auto',
        name: str | None = None,
    ) -> Tensor: ...
    def CollectiveReduceScatter(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        group_size: _Int,
        group_key: _Int,
        instance_key: _Int,
        merge_op: _Text,
        final_op: _Text,
        communication_hint: _Text | None = 'auto',
        name: str | None = None,
    ) -> Tensor: ...
    def CombinedNonMaxSuppression(
        self,
        boxes: _Any,
        scores: _Any,
        max_output_size_per_class: _Any,
        max_total_size: _Any,
        iou_threshold: _Any,
        score_threshold: _Any,
        *,
        pad_per_class: _Bool | None = False,
        clip_boxes: _Bool | None = True,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
    def Complex(
        self,
        real: _Any,
        imag: _Any,
        *,
        T: _Type | None = ...,
        Tout: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ComplexAbs(
        self,
        x: _Any,
        *,
        T: _Type | None = ...,
        Tout: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ComputeAccidentalHits(
        self,
        true_classes: _Any,
        sampled_candidates: _Any,
        *,
        num_true: _Int,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def Concat(
        self,
        concat_dim: _Any,
        values: _Any,
        *,
        N: _Int | None = None,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ConcatOffset(
        self,
        concat_dim: _Any,
        shape: _Any,
        *,
        N: _Int | None = None,
        shape_type: _Type | None = ...,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def ConcatV2(
        self,
        values: _Any,
        axis: _Any,
        *,
        N: _Int | None = None,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ConcatenateDataset(
        self,
        input_dataset: _Any,
        another_dataset: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Conj(
        self,
        input: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ConjugateTranspose(
        self,
        x: _Any,
        perm: _Any,
        *,
        T: _Type | None = None,
        Tperm: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Const(
        self,
        *,
        value: _Any,
        dtype: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def Conv2D(
        self,
        input: _Any,
        filter: _Any,
        *,
        T: _Type | None = None,
        use_cudnn_on_gpu: _Bool | None = True,
        strides: Iterable[_Int],
        padding: _Text,
        explicit_paddings: Iterable[_Int] | None = (),
        data_format: _Text | None = 'NHWC',
        dilations: Iterable[_Int] | None = (1, 1, 1, 1),
        name: str | None = None,
    ) -> Tensor: ...
    def Conv2DBackpropFilter(
        self,
        input: _Any,
        filter_sizes: _Any,
        out_backprop: _Any,
        *,
        T: _Type | None = None,
        use_cudnn_on_gpu: _Bool | None = True,
        strides: Iterable[_Int],
        padding: _Text,
        explicit_paddings: Iterable[_Int] | None = (),
        data_format: _Text | None = 'NHWC',
        dilations: Iterable[_Int] | None = (1, 1, 1, 1),
        name: str | None = None,
    ) -> Tensor: ...
    def Conv2DBackpropInput(
        self,
        input_sizes: _Any,
        filter: _Any,
        out_backprop: _Any,
        *,
        T: _Type | None = None,
        use_cudnn_on_gpu: _Bool | None = True,
        strides: Iterable[_Int],
        padding: _Text,
        explicit_paddings: Iterable[_Int] | None = (),
        data_format: _Text | None = 'NHWC',
        dilations: Iterable[_Int] | None = (1, 1, 1, 1),
        name: str | None = None,
    ) -> Tensor: ...
    def Conv3D(
        self,
        input: _Any,
        filter: _Any,
        *,
        T: _Type | None = None,
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NDHWC',
        dilations: Iterable[_Int] | None = (1, 1, 1, 1, 1),
        name: str | None = None,
    ) -> Tensor: ...
    def Conv3DBackpropFilterV2(
        self,
        input: _Any,
        filter_sizes: _Any,
        out_backprop: _Any,
        *,
        T: _Type | None = None,
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NDHWC',
        dilations: Iterable[_Int] | None = (1, 1, 1, 1, 1),
        name: str | None = None,
    ) -> Tensor: ...
    def Conv3DBackpropInputV2(
        self,
        input_sizes: _Any,
        filter: _Any,
        out_backprop: _Any,
        *,
        T: _Type | None = None,
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NDHWC',
        dilations: Iterable[_Int] | None = (1, 1, 1, 1, 1),
        Tshape: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Cos(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Cosh(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def CreateQuantileAccumulator(
        self,
        quantile_accumulator_handle: _Any,
        stamp_token: _Any,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        max_elements: _Int | None = 1099511627776,
        epsilon: _Float,
        num_quantiles: _Int,
        generate_quantiles: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def CreateStatsAccumulatorScalar(
        self,
        stats_accumulator_handle: _Any,
        stamp_token: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def CreateStatsAccumulatorTensor(
        self,
        stats_accumulator_handle: _Any,
        stamp_token: _Any,
        per_slot_gradient_shape: _Any,
        per_slot_hessian_shape: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def CreateSummaryFileWriter(
        self,
        writer: _Any,
        logdir: _Any,
        max_queue: _Any,
        flush_millis: _Any,
        filename_suffix: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def CreateTreeEnsembleVariable(
        self,
        tree_ensemble_handle: _Any,
        stamp_token: _Any,
        tree_ensemble_config: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def CropAndResize(
        self,
        image: _Any,
        boxes: _Any,
        box_ind: _Any,
        crop_size: _Any,
        *,
        T: _Type | None = None,
        method: _Text | None = 'bilinear',
        extrapolation_value: _Float | None = 0.0,
        name: str | None = None,
    ) -> Tensor: ...
    def CropAndResizeGradBoxes(
        self,
        grads: _Any,
        image: _Any,
        boxes: _Any,
        box_ind: _Any,
        *,
        T: _Type | None = None,
        method: _Text | None = 'bilinear',
        name: str | None = None,
    ) -> Tensor: ...
    def CropAndResizeGradImage(
        self,
        grads: _Any,
        boxes: _Any,
        box_ind: _Any,
        image_size: _Any,
        *,
        T: _Type,
        method: _Text | None = 'bilinear',
        name: str | None = None,
    ) -> Tensor: ...
    def Cross(
        self,
        a: _Any,
        b: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Cumprod(
        self,
        x: _Any,
        axis: _Any,
        *,
        exclusive: _Bool | None = False,
        reverse: _Bool | None = False,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Cumsum(
        self,
        x: _Any,
        axis: _Any,
        *,
        exclusive: _Bool | None = False,
        reverse: _Bool | None = False,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def CumulativeLogsumexp(
        self,
        x: _Any,
        axis: _Any,
        *,
        exclusive: _Bool | None = False,
        reverse: _Bool | None = False,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def DatasetCardinality(
        self,
        input_dataset: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def DatasetToSingleElement(
        self,
        dataset: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> list[Tensor]: ...
    def DatasetToTFRecord(
        self,
        input_dataset: _Any,
        filename: _Any,
        compression_type: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def DecisionTreeEnsembleResourceHandleOp(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def DecodeAndCropJpeg(
        self,
        contents: _Any,
        crop_window: _Any,
        *,
        channels: _Int | None = 0,
        ratio: _Int | None = 1,
        fancy_upscaling: _Bool | None = True,
        try_recover_truncated: _Bool | None = False,
        acceptable_fraction: _Float | None = 1.0,
        dct_method: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def DecodeBase64(
        self,
        input: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def DecodeBmp(
        self,
        contents: _Any,
        *,
        channels: _Int | None = 0,
        name: str | None = None,
    ) -> Tensor: ...
    def DecodeCSV(
        self,
        records: _Any,
        record_defaults: _Any,
        *,
        OUT_TYPE: Iterable[_Type] | None = None,
        field_delim: _Text | None = ',',
        use_quote_delim: _Bool | None = True,
        na_value: _Text | None = '',
        select_cols: Iterable[_Int] | None = (),
        name: str | None = None,
    ) -> list[Tensor]: ...
    def DecodeCompressed(
        self,
        bytes: _Any,
        *,
        compression_type: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def DecodeGif(
        self,
        contents: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def DecodeImage(
        self,
        contents: _Any,
        *,
        channels: _Int | None = 0,
        dtype: _Type | None = ...,
        expand_animations: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def DecodeJSONExample(
        self,
        json_examples: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def DecodeJpeg(
        self,
        contents: _Any,
        *,
        channels: _Int | None = 0,
        ratio: _Int | None = 1,
        fancy_upscaling: _Bool | None = True,
        try_recover_truncated: _Bool | None = False,
        acceptable_fraction: _Float | None = 1.0,
        dct_method: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def DecodePaddedRaw(
        self,
        input_bytes: _Any,
        fixed_length: _Any,
        *,
        out_type: _Type,
        little_endian: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def DecodePng(
        self,
        contents: _Any,
        *,
        channels: _Int | None = 0,
        dtype: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def DecodeRaw(
        self,
        bytes: _Any,
        *,
        out_type: _Type,
        little_endian: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def DeleteSessionTensor(
        self,
        handle: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def DenseBincount(
        self,
        input: _Any,
        size: _Any,
        weights: _Any,
        *,
        Tidx: _Type | None = None,
        T: _Type | None = None,
        binary_output: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def DenseToDenseSetOperation(
        self,
        set1: _Any,
        set2: _Any,
        *,
        set_operation: _Text,
        validate_indices: _Bool | None = True,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def DenseToSparseBatchDataset(
        self,
        input_dataset: _Any,
        batch_size: _Any,
        row_shape: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def DenseToSparseSetOperation(
        self,
        set1: _Any,
        set2_indices: _Any,
        set2_values: _Any,
        set2_shape: _Any,
        *,
        set_operation: _Text,
        validate_indices: _Bool | None = True,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def DepthToSpace(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        block_size: _Int,
        data_format: _Text | None = 'NHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def DepthwiseConv2dNative(
        self,
        input: _Any,
        filter: _Any,
        *,
        T: _Type | None = None,
        strides: Iterable[_Int],
        padding: _Text,
        explicit_paddings: Iterable[_Int] | None = (),
        data_format: _Text | None = 'NHWC',
        dilations: Iterable[_Int] | None = (1, 1, 1, 1),
        name: str | None = None,
    ) -> Tensor: ...
    def DepthwiseConv2dNativeBackpropFilter(
        self,
        input: _Any,
        filter_sizes: _Any,
        out_backprop: _Any,
        *,
        T: _Type | None = None,
        strides: Iterable[_Int],
        padding: _Text,
        explicit_paddings: Iterable[_Int] | None = (),
        data_format: _Text | None = 'NHWC',
        dilations: Iterable[_Int] | None = (1, 1, 1, 1),
        name: str | None = None,
    ) -> Tensor: ...
    def DepthwiseConv2dNativeBackpropInput(
        self,
        input_sizes: _Any,
        filter: _Any,
        out_backprop: _Any,
        *,
        T: _Type | None = None,
        strides: Iterable[_Int],
        padding: _Text,
        explicit_paddings: Iterable[_Int] | None = (),
        data_format: _Text | None = 'NHWC',
        dilations: Iterable[_Int] | None = (1, 1, 1, 1),
        name: str | None = None,
    ) -> Tensor: ...
    def Dequantize(
        self,
        input: _Any,
        min_range: _Any,
        max_range: _Any,
        *,
        T: _Type | None = None,
        mode: _Text | None = 'MIN_COMBINED',
        narrow_range: _Bool | None = False,
        axis: _Int | None = -1,
        dtype: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def DeserializeManySparse(
        self,
        serialized_sparse: _Any,
        *,
        dtype: _Type,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def DeserializeRagged(
        self,
        serialized: _Any,
        *,
        T: _Type,
        Tsplits: _Type,
        N: _Int,
        row_shape: _Shape,
        name: str | None = None,
    ) -> tuple[list[Tensor], Tensor]: ...
    def DeserializeSparse(
        self,
        serialized_sparse: _Any,
        *,
        dtype: _Type,
        Tserialized: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def DestroyResourceOp(
        self,
        resource: _Any,
        *,
        ignore_lookup_error: _Bool | None = True,
        name: str | None = None,
    ) -> Operation: ...
    def Diag(
        self,
        diagonal: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def DiagPart(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Digamma(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Dilation2D(
        self,
        input: _Any,
        filter: _Any,
        *,
        T: _Type | None = None,
        strides: Iterable[_Int],
        rates: Iterable[_Int],
        padding: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def Dilation2DBackpropFilter(
        self,
        input: _Any,
        filter: _Any,
        out_backprop: _Any,
        *,
        T: _Type | None = None,
        strides: Iterable[_Int],
        rates: Iterable[_Int],
        padding: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def Dilation2DBackpropInput(
        self,
        input: _Any,
        filter: _Any,
        out_backprop: _Any,
        *,
        T: _Type | None = None,
        strides: Iterable[_Int],
        rates: Iterable[_Int],
        padding: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def DirectedInterleaveDataset(
        self,
        selector_input_dataset: _Any,
        data_input_datasets: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        N: _Int | None = None,
        stop_on_empty_dataset: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def DisableCopyOnRead(
        self,
        resource: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def Div(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def DivNoNan(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def DrawBoundingBoxes(
        self,
        images: _Any,
        boxes: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def DrawBoundingBoxesV2(
        self,
        images: _Any,
        boxes: _Any,
        colors: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def DynamicPartition(
        self,
        data: _Any,
        partitions: _Any,
        *,
        num_partitions: _Int,
        T: _Type | None = None,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def DynamicStitch(
        self,
        indices: _Any,
        data: _Any,
        *,
        N: _Int | None = None,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def EditDistance(
        self,
        hypothesis_indices: _Any,
        hypothesis_values: _Any,
        hypothesis_shape: _Any,
        truth_indices: _Any,
        truth_values: _Any,
        truth_shape: _Any,
        *,
        normalize: _Bool | None = True,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Einsum(
        self,
        inputs: _Any,
        *,
        equation: _Text,
        T: _Type | None = None,
        N: _Int | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Elu(
        self,
        features: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def EluGrad(
        self,
        gradients: _Any,
        outputs: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def EmbeddingTable(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        width: _Int,
        dtype: _Type,
        initializer: _Text | None = 'constant',
        numbers: Iterable[_Float] | None = (0.0,),
        seed: _Int | None = 0,
        admit_after: _Int | None = 1,
        admit_counters: _Int | None = 0,
        memory_limit: _Int | None = 0,
        directory: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def EmbeddingTableApply(
        self,
        table: _Any,
        keys: _Any,
        grad: _Any,
        arguments: _Any,
        *,
        rule: _Text | None = 'GradientDescent',
        slots: Iterable[_Text] | None = (),
        starts: Iterable[_Float] | None = (),
        dtype: _Type | None = None,
        Targuments: Iterable[_Type] | None = None,
        use_nesterov: _Bool | None = False,
        update_slots: _Bool | None = True,
        name: str | None = None,
    ) -> Operation: ...
    def EmbeddingTableAssign(
        self,
        table: _Any,
        keys: _Any,
        rows: _Any,
        *,
        dtype: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def EmbeddingTableCheck(
        self,
        table: _Any,
        prefix: _Any,
        *,
        table_name: _Text,
        slots: Iterable[_Text] | None = (),
        starts: Iterable[_Float] | None = (),
        strict: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def EmbeddingTableEvict(
        self,
        table: _Any,
        unseen_for: _Any,
        fewer_than: _Any,
        norm_below: _Any,
        keep: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def EmbeddingTableExport(
        self,
        table: _Any,
        *,
        dtype: _Type,
        slot: _Text | None = '',
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def EmbeddingTableFind(
        self,
        table: _Any,
        keys: _Any,
        *,
        dtype: _Type,
        grows: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def EmbeddingTableKeys(
        self,
        keys: _Any,
        *,
        salt: _Int | None = 0,
        name: str | None = None,
    ) -> Tensor: ...
    def EmbeddingTablePart(
        self,
        keys: _Any,
        *,
        num_parts: _Int,
        name: str | None = None,
    ) -> Tensor: ...
    def EmbeddingTableRestore(
        self,
        table: _Any,
        prefix: _Any,
        *,
        table_name: _Text,
        part: _Int | None = 0,
        num_parts: _Int | None = 1,
        with_slots: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def EmbeddingTableSave(
        self,
        table: _Any,
        prefix: _Any,
        *,
        table_name: _Text,
        part: _Int | None = 0,
        num_parts: _Int | None = 1,
        changes: _Bool | None = False,
        checkpoint: _Bool | None = False,
        incremental: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def EmbeddingTableSize(
        self,
        table: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def EmptyTensorList(
        self,
        element_shape: _Any,
        max_num_elements: _Any,
        *,
        element_dtype: _Type,
        shape_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def EncodeBase64(
        self,
        input: _Any,
        *,
        pad: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def EncodeJpeg(
        self,
        image: _Any,
        *,
        format: _Text | None = '',
        quality: _Int | None = 95,
        progressive: _Bool | None = False,
        optimize_size: _Bool | None = False,
        chroma_downsampling: _Bool | None = True,
        density_unit: _Text | None = 'in',
        x_density: _Int | None = 300,
        y_density: _Int | None = 300,
        xmp_metadata: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def EncodeJpegVariableQuality(
        self,
        images: _Any,
        quality: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def EncodePng(
        self,
        image: _Any,
        *,
        compression: _Int | None = -1,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def EnsureShape(
        self,
        input: _Any,
        *,
        shape: _Shape,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Enter(
        self,
        data: _Any,
        *,
        T: _Type | None = None,
        frame_name: _Text,
        is_constant: _Bool | None = False,
        parallel_iterations: _Int | None = 10,
        name: str | None = None,
    ) -> Tensor: ...
    def Equal(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        incompatible_shape_error: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def Erf(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Erfc(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Erfinv(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def EuclideanNorm(
        self,
        input: _Any,
        reduction_indices: _Any,
        *,
        keep_dims: _Bool | None = False,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Exit(
        self,
        data: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Exp(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ExpandDims(
        self,
        input: _Any,
        dim: _Any,
        *,
        T: _Type | None = None,
        Tdim: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Expm1(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ExtractGlimpse(
        self,
        input: _Any,
        size: _Any,
        offsets: _Any,
        *,
        centered: _Bool | None = True,
        normalized: _Bool | None = True,
        uniform_noise: _Bool | None = True,
        noise: _Text | None = 'uniform',
        name: str | None = None,
    ) -> Tensor: ...
    def ExtractImagePatches(
        self,
        images: _Any,
        *,
        ksizes: Iterable[_Int],
        strides: Iterable[_Int],
        rates: Iterable[_Int],
        T: _Type | None = None,
        padding: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def ExtractJpegShape(
        self,
        contents: _Any,
        *,
        output_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def FFT(
        self,
        input: _Any,
        *,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def FFT2D(
        self,
        input: _Any,
        *,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def FFT3D(
        self,
        input: _Any,
        *,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def FIFOQueueV2(
        self,
        *,
        component_types: Iterable[_Type],
        shapes: Iterable[_Shape] | None = (),
        capacity: _Int | None = -1,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def FakeQuantWithMinMaxArgs(
        self,
        inputs: _Any,
        *,
        min: _Float | None = -6.0,
        max: _Float | None = 6.0,
        num_bits: _Int | None = 8,
        narrow_range: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def FakeQuantWithMinMaxArgsGradient(
        self,
        gradients: _Any,
        inputs: _Any,
        *,
        min: _Float | None = -6.0,
        max: _Float | None = 6.0,
        num_bits: _Int | None = 8,
        narrow_range: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def FakeQuantWithMinMaxVars(
        self,
        inputs: _Any,
        min: _Any,
        max: _Any,
        *,
        num_bits: _Int | None = 8,
        narrow_range: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def FakeQuantWithMinMaxVarsGradient(
        self,
        gradients: _Any,
        inputs: _Any,
        min: _Any,
        max: _Any,
        *,
        num_bits: _Int | None = 8,
        narrow_range: _Bool | None = False,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def FakeQuantWithMinMaxVarsPerChannel(
        self,
        inputs: _Any,
        min: _Any,
        max: _Any,
        *,
        num_bits: _Int | None = 8,
        narrow_range: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def FakeQuantWithMinMaxVarsPerChannelGradient(
        self,
        gradients: _Any,
        inputs: _Any,
        min: _Any,
        max: _Any,
        *,
        num_bits: _Int | None = 8,
        narrow_range: _Bool | None = False,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def Fill(
        self,
        dims: _Any,
        value: _Any,
        *,
        T: _Type | None = None,
        index_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def FilterDataset(
        self,
        input_dataset: _Any,
        other_arguments: _Any,
        *,
        predicate: _Any,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def FiniteOrZero(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def FixedLengthRecordDataset(
        self,
        filenames: _Any,
        header_bytes: _Any,
        record_bytes: _Any,
        footer_bytes: _Any,
        buffer_size: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def FixedLengthRecordDatasetV2(
        self,
        filenames: _Any,
        header_bytes: _Any,
        record_bytes: _Any,
        footer_bytes: _Any,
        buffer_size: _Any,
        compression_type: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def FixedLengthRecordReaderV2(
        self,
        *,
        header_bytes: _Int | None = 0,
        record_bytes: _Int,
        footer_bytes: _Int | None = 0,
        hop_bytes: _Int | None = 0,
        encoding: _Text | None = '',
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def FixedUnigramCandidateSampler(
        self,
        true_classes: _Any,
        *,
        num_true: _Int,
        num_sampled: _Int,
        unique: _Bool,
        range_max: _Int,
        vocab_file: _Text | None = '',
        distortion: _Float | None = 1.0,
        num_reserved_ids: _Int | None = 0,
        num_shards: _Int | None = 1,
        shard: _Int | None = 0,
        unigrams: Iterable[_Float] | None = (),
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def FlatMapDataset(
        self,
        input_dataset: _Any,
        other_arguments: _Any,
        *,
        f: _Any,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Floor(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def FloorDiv(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def FloorMod(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def FlushSummaryWriter(
        self,
        writer: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def FusedBatchNorm(
        self,
        x: _Any,
        scale: _Any,
        offset: _Any,
        mean: _Any,
        variance: _Any,
        *,
        T: _Type | None = None,
        exponential_avg_factor: _Float | None = 1.0,
        epsilon: _Float | None = 0.0001,
        data_format: _Text | None = 'NHWC',
        is_training: _Bool | None = True,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def FusedBatchNormGrad(
        self,
        y_backprop: _Any,
        x: _Any,
        scale: _Any,
        reserve_space_1: _Any,
        reserve_space_2: _Any,
        *,
        T: _Type | None = None,
        epsilon: _Float | None = 0.0001,
        data_format: _Text | None = 'NHWC',
        is_training: _Bool | None = True,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def FusedBatchNormGradV2(
        self,
        y_backprop: _Any,
        x: _Any,
        scale: _Any,
        reserve_space_1: _Any,
        reserve_space_2: _Any,
        *,
        T: _Type | None = None,
        U: _Type | None = None,
        epsilon: _Float | None = 0.0001,
        data_format: _Text | None = 'NHWC',
        is_training: _Bool | None = True,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def FusedBatchNormGradV3(
        self,
        y_backprop: _Any,
        x: _Any,
        scale: _Any,
        reserve_space_1: _Any,
        reserve_space_2: _Any,
        reserve_space_3: _Any,
        *,
        T: _Type | None = None,
        U: _Type | None = None,
        epsilon: _Float | None = 0.0001,
        data_format: _Text | None = 'NHWC',
        is_training: _Bool | None = True,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def FusedBatchNormV2(
        self,
        x: _Any,
        scale: _Any,
        offset: _Any,
        mean: _Any,
        variance: _Any,
        *,
        T: _Type | None = None,
        U: _Type | None = None,
        exponential_avg_factor: _Float | None = 1.0,
        epsilon: _Float | None = 0.0001,
        data_format: _Text | None = 'NHWC',
        is_training: _Bool | None = True,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def FusedBatchNormV3(
        self,
        x: _Any,
        scale: _Any,
        offset: _Any,
        mean: _Any,
        variance: _Any,
        *,
        T: _Type | None = None,
        U: _Type | None = None,
        exponential_avg_factor: _Float | None = 1.0,
        epsilon: _Float | None = 0.0001,
        data_format: _Text | None = 'NHWC',
        is_training: _Bool | None = True,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def Gather(
        self,
        params: _Any,
        indices: _Any,
        *,
        validate_indices: _Bool | None = True,
        Tparams: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def GatherGrad(
        self,
        shape: _Any,
        indices: _Any,
        axis: _Any,
        dy: _Any,
        *,
        batch_dims: _Int | None = 0,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        Taxis: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def GatherNd(
        self,
        params: _Any,
        indices: _Any,
        *,
        Tparams: _Type | None = None,
        Tindices: _Type | None = None,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def GatherTree(
        self,
        step_ids: _Any,
        parent_ids: _Any,
        max_sequence_lengths: _Any,
        end_token: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def GatherV2(
        self,
        params: _Any,
        indices: _Any,
        axis: _Any,
        *,
        batch_dims: _Int | None = 0,
        Tparams: _Type | None = None,
        Tindices: _Type | None = None,
        Taxis: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def GetSessionHandle(
        self,
        value: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def GetSessionTensor(
        self,
        handle: _Any,
        *,
        dtype: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def GradientTreesPartitionExamples(
        self,
        tree_ensemble_handle: _Any,
        dense_float_features: _Any,
        sparse_float_feature_indices: _Any,
        sparse_float_feature_values: _Any,
        sparse_float_feature_shapes: _Any,
        sparse_int_feature_indices: _Any,
        sparse_int_feature_values: _Any,
        sparse_int_feature_shapes: _Any,
        *,
        num_dense_float_features: _Int | None = None,
        num_sparse_float_features: _Int | None = None,
        num_sparse_int_features: _Int | None = None,
        use_locking: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def GradientTreesPrediction(
        self,
        tree_ensemble_handle: _Any,
        seed: _Any,
        dense_float_features: _Any,
        sparse_float_feature_indices: _Any,
        sparse_float_feature_values: _Any,
        sparse_float_feature_shapes: _Any,
        sparse_int_feature_indices: _Any,
        sparse_int_feature_values: _Any,
        sparse_int_feature_shapes: _Any,
        *,
        learner_config: _Text,
        num_dense_float_features: _Int | None = None,
        num_sparse_float_features: _Int | None = None,
        num_sparse_int_features: _Int | None = None,
        use_locking: _Bool | None = False,
        apply_dropout: _Bool,
        apply_averaging: _Bool,
        center_bias: _Bool,
        reduce_dim: _Bool,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def GradientTreesPredictionVerbose(
        self,
        tree_ensemble_handle: _Any,
        seed: _Any,
        dense_float_features: _Any,
        sparse_float_feature_indices: _Any,
        sparse_float_feature_values: _Any,
        sparse_float_feature_shapes: _Any,
        sparse_int_feature_indices: _Any,
        sparse_int_feature_values: _Any,
        sparse_int_feature_shapes: _Any,
        *,
        learner_config: _Text,
        num_dense_float_features: _Int | None = None,
        num_sparse_float_features: _Int | None = None,
        num_sparse_int_features: _Int | None = None,
        use_locking: _Bool | None = False,
        apply_dropout: _Bool,
        apply_averaging: _Bool,
        center_bias: _Bool,
        reduce_dim: _Bool,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def Greater(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def GreaterEqual(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def GroupByReducerDataset(
        self,
        input_dataset: _Any,
        key_func_other_arguments: _Any,
        init_func_other_arguments: _Any,
        reduce_func_other_arguments: _Any,
        finalize_func_other_arguments: _Any,
        *,
        key_func: _Any,
        Tkey_func_other_arguments: Iterable[_Type] | None = None,
        init_func: _Any,
        Tinit_func_other_arguments: Iterable[_Type] | None = None,
        reduce_func: _Any,
        Treduce_func_other_arguments: Iterable[_Type] | None = None,
        finalize_func: _Any,
        Tfinalize_func_other_arguments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def GroupByWindowDataset(
        self,
        input_dataset: _Any,
        key_func_other_arguments: _Any,
        reduce_func_other_arguments: _Any,
        window_size_func_other_arguments: _Any,
        *,
        key_func: _Any,
        Tkey_func_other_arguments: Iterable[_Type] | None = None,
        reduce_func: _Any,
        Treduce_func_other_arguments: Iterable[_Type] | None = None,
        window_size_func: _Any,
        Twindow_size_func_other_arguments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def GrowTreeEnsemble(
        self,
        tree_ensemble_handle: _Any,
        stamp_token: _Any,
        next_stamp_token: _Any,
        learning_rate: _Any,
        dropout_seed: _Any,
        max_tree_depth: _Any,
        weak_learner_type: _Any,
        partition_ids: _Any,
        gains: _Any,
        splits: _Any,
        *,
        learner_config: _Text,
        num_handlers: _Int | None = None,
        center_bias: _Bool,
        name: str | None = None,
    ) -> Operation: ...
    def GuaranteeConst(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def HSVToRGB(
        self,
        images: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def HashTableV2(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        use_node_name_sharing: _Bool | None = False,
        key_dtype: _Type,
        value_dtype: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def HeadraceDualAscent(
        self,
        dense: _Any,
        owners: _Any,
        columns: _Any,
        values: _Any,
        labels: _Any,
        weights: _Any,
        slots: _Any,
        order: _Any,
        duals: _Any,
        dense_weights: _Any,
        sparse_weights: _Any,
        *,
        loss: _Text,
        l1: _Float | None = 0.0,
        l2: _Float,
        partitions: _Int | None = 1,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def HeadraceForest(
        self,
        *,
        num_trees: _Int,
        max_nodes: _Int,
        num_outputs: _Int,
        num_features: _Int,
        num_splits: _Int,
        split_after: _Int,
        bagging: _Float | None = 1.0,
        feature_bagging: _Float | None = 1.0,
        regression: _Bool | None = False,
        inclusive: _Bool | None = True,
        seed: _Int | None = 0,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def HeadraceForestLoad(
        self,
        forest: _Any,
        sizes: _Any,
        features: _Any,
        nodes: _Any,
        thresholds: _Any,
        sums: _Any,
        counts: _Any,
        tests: _Any,
        values: _Any,
        before: _Any,
        below: _Any,
        random: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def HeadraceForestPredict(
        self,
        forest: _Any,
        data: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def HeadraceForestState(
        self,
        forest: _Any,
        *,
        stats: _Bool | None = False,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def HeadraceForestStatus(
        self,
        forest: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def HeadraceForestTrain(
        self,
        forest: _Any,
        data: _Any,
        labels: _Any,
        weights: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def HeadraceMixtureExpectation(
        self,
        points: _Any,
        weights: _Any,
        means: _Any,
        covariances: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def HeadraceNearestCenters(
        self,
        points: _Any,
        centers: _Any,
        *,
        T: _Type | None = None,
        num_clusters: _Int | None = -1,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
    def HeadraceWeightedSolve(
        self,
        ids: _Any,
        owners: _Any,
        factors: _Any,
        weights: _Any,
        values: _Any,
        gramian: _Any,
        *,
        T: _Type | None = None,
        unobserved_weight: _Float,
        regularization: _Float,
        name: str | None = None,
    ) -> Tensor: ...
    def HistogramFixedWidth(
        self,
        values: _Any,
        value_range: _Any,
        nbins: _Any,
        *,
        T: _Type | None = None,
        dtype: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def HistogramSummary(
        self,
        tag: _Any,
        values: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def HoldForSave(
        self,
        prefix: _Any,
        tensor_names: _Any,
        shape_and_slices: _Any,
        tensors: _Any,
        *,
        dtypes: Iterable[_Type] | None = None,
        key: _Text,
        name: str | None = None,
    ) -> Operation: ...
    def IFFT(
        self,
        input: _Any,
        *,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def IFFT2D(
        self,
        input: _Any,
        *,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def IFFT3D(
        self,
        input: _Any,
        *,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def IRFFT(
        self,
        input: _Any,
        fft_length: _Any,
        *,
        Treal: _Type | None = ...,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def IRFFT2D(
        self,
        input: _Any,
        fft_length: _Any,
        *,
        Treal: _Type | None = ...,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def IRFFT3D(
        self,
        input: _Any,
        fft_length: _Any,
        *,
        Treal: _Type | None = ...,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Identity(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def IdentityN(
        self,
        input: _Any,
        *,
        T: Iterable[_Type] | None = None,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def IdentityReaderV2(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def If(
        self,
        cond: _Any,
        input: _Any,
        *,
        Tcond: _Type | None = None,
        Tin: Iterable[_Type] | None = None,
        Tout: Iterable[_Type],
        then_branch: _Any,
        else_branch: _Any,
        output_shapes: Iterable[_Shape] | None = (),
        _saved: Iterable[_Text] | None = (),
        _Tsaved: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def Igamma(
        self,
        a: _Any,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def IgammaGradA(
        self,
        a: _Any,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Igammac(
        self,
        a: _Any,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def IgnoreErrorsDataset(
        self,
        input_dataset: _Any,
        *,
        log_warning: _Bool | None = False,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Imag(
        self,
        input: _Any,
        *,
        T: _Type | None = ...,
        Tout: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ImageProjectiveTransformV2(
        self,
        images: _Any,
        transforms: _Any,
        output_shape: _Any,
        *,
        dtype: _Type | None = None,
        interpolation: _Text,
        fill_mode: _Text | None = 'CONSTANT',
        name: str | None = None,
    ) -> Tensor: ...
    def ImageProjectiveTransformV3(
        self,
        images: _Any,
        transforms: _Any,
        output_shape: _Any,
        fill_value: _Any,
        *,
        dtype: _Type | None = None,
        interpolation: _Text,
        fill_mode: _Text | None = 'CONSTANT',
        name: str | None = None,
    ) -> Tensor: ...
    def ImageSummary(
        self,
        tag: _Any,
        tensor: _Any,
        *,
        max_images: _Int | None = 3,
        T: _Type | None = ...,
        bad_color: _Any | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ImportEvent(
        self,
        writer: _Any,
        event: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def InTopK(
        self,
        predictions: _Any,
        targets: _Any,
        *,
        k: _Int,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def InTopKV2(
        self,
        predictions: _Any,
        targets: _Any,
        k: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def InitializeTableFromTextFileV2(
        self,
        table_handle: _Any,
        filename: _Any,
        *,
        key_index: _Int,
        value_index: _Int,
        vocab_size: _Int | None = -1,
        delimiter: _Text | None = '\t',
        offset: _Int | None = 0,
        name: str | None = None,
    ) -> Operation: ...
    def InitializeTableV2(
        self,
        table_handle: _Any,
        keys: _Any,
        values: _Any,
        *,
        Tkey: _Type | None = None,
        Tval: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def InputDispenser(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def InputDispenserInitialize(
        self,
        handle: _Any,
        *,
        num_ranges: _Int,
        num_epochs: _Int,
        fingerprint: _Int,
        name: str | None = None,
    ) -> Operation: ...
    def InputDispenserIsInitialized(
        self,
        handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def InputDispenserMark(
        self,
        handle: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def InputDispenserRequest(
        self,
        handle: _Any,
        value: _Any,
        *,
        request: _Text,
        num_ranges: _Int,
        num_epochs: _Int,
        fingerprint: _Int,
        name: str | None = None,
    ) -> Tensor: ...
    def InputDispenserRestore(
        self,
        handle: _Any,
        state: _Any,
        *,
        num_ranges: _Int,
        num_epochs: _Int,
        fingerprint: _Int,
        name: str | None = None,
    ) -> Operation: ...
    def InputDispenserState(
        self,
        handle: _Any,
        *,
        marked: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def InterleaveDataset(
        self,
        input_dataset: _Any,
        other_arguments: _Any,
        cycle_length: _Any,
        block_length: _Any,
        *,
        f: _Any,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Inv(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def InvGrad(
        self,
        y: _Any,
        dy: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Invert(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def InvertPermutation(
        self,
        x: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def IsBoostedTreesEnsembleInitialized(
        self,
        tree_ensemble_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def IsBoostedTreesQuantileStreamResourceInitialized(
        self,
        quantile_stream_resource_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def IsFinite(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def IsInf(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def IsNan(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Iterator(
        self,
        *,
        shared_name: _Text,
        container: _Text,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def IteratorFromStringHandle(
        self,
        string_handle: _Any,
        *,
        output_types: Iterable[_Type] | None = (),
        output_shapes: Iterable[_Shape] | None = (),
        name: str | None = None,
    ) -> Tensor: ...
    def IteratorFromStringHandleV2(
        self,
        string_handle: _Any,
        *,
        output_types: Iterable[_Type] | None = (),
        output_shapes: Iterable[_Shape] | None = (),
        name: str | None = None,
    ) -> Tensor: ...
    def IteratorGetNext(
        self,
        iterator: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> list[Tensor]: ...
    def IteratorGetNextAsOptional(
        self,
        iterator: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def IteratorGetNextSync(
        self,
        iterator: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> list[Tensor]: ...
    def IteratorState(
        self,
        resource_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def IteratorToStringHandle(
        self,
        resource_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def IteratorV2(
        self,
        *,
        shared_name: _Text,
        container: _Text,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def JaxCall(
        self,
        args: _Any,
        *,
        Tin: Iterable[_Type] | None = None,
        Tout: Iterable[_Type],
        program: _Text,
        backward: _Text | None = '',
        wrt: Iterable[_Int] | None = (),
        differentiable: Iterable[_Int] | None = (),
        kept: Iterable[_Int] | None = (),
        name: str | None = None,
    ) -> list[Tensor]: ...
    def KMC2ChainInitialization(
        self,
        distances: _Any,
        seed: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def KmeansPlusPlusInitialization(
        self,
        points: _Any,
        num_to_sample: _Any,
        seed: _Any,
        num_retries_per_sample: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def L2Loss(
        self,
        t: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def LMDBDataset(
        self,
        filenames: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def LMDBReader(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def LRN(
        self,
        input: _Any,
        *,
        depth_radius: _Int | None = 5,
        bias: _Float | None = 1.0,
        alpha: _Float | None = 1.0,
        beta: _Float | None = 0.5,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def LRNGrad(
        self,
        input_grads: _Any,
        input_image: _Any,
        output_image: _Any,
        *,
        depth_radius: _Int | None = 5,
        bias: _Float | None = 1.0,
        alpha: _Float | None = 1.0,
        beta: _Float | None = 0.5,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def LatencyStatsDataset(
        self,
        input_dataset: _Any,
        tag: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def LeakyRelu(
        self,
        features: _Any,
        *,
        alpha: _Float | None = 0.2,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def LeakyReluGrad(
        self,
        gradients: _Any,
        features: _Any,
        *,
        alpha: _Float | None = 0.2,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def LearnedUnigramCandidateSampler(
        self,
        true_classes: _Any,
        *,
        num_true: _Int,
        num_sampled: _Int,
        unique: _Bool,
        range_max: _Int,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def LeftShift(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Less(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def LessEqual(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Lgamma(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def LinSpace(
        self,
        start: _Any,
        stop: _Any,
        num: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ListDiff(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        out_idx: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def Log(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Log1p(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def LogMatrixDeterminant(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def LogSoftmax(
        self,
        logits: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def LogSoftmaxGrad(
        self,
        gradients: _Any,
        softmax: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def LogUniformCandidateSampler(
        self,
        true_classes: _Any,
        *,
        num_true: _Int,
        num_sampled: _Int,
        unique: _Bool,
        range_max: _Int,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def LogicalAnd(
        self,
        x: _Any,
        y: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def LogicalNot(
        self,
        x: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def LogicalOr(
        self,
        x: _Any,
        y: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def LookupTableExportV2(
        self,
        table_handle: _Any,
        *,
        Tkeys: _Type,
        Tvalues: _Type,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def LookupTableFindV2(
        self,
        table_handle: _Any,
        keys: _Any,
        default_value: _Any,
        *,
        Tin: _Type | None = None,
        Tout: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def LookupTableImportV2(
        self,
        table_handle: _Any,
        keys: _Any,
        values: _Any,
        *,
        Tin: _Type | None = None,
        Tout: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def LookupTableInsertV2(
        self,
        table_handle: _Any,
        keys: _Any,
        values: _Any,
        *,
        Tin: _Type | None = None,
        Tout: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def LookupTableRemoveV2(
        self,
        table_handle: _Any,
        keys: _Any,
        *,
        Tin: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def LookupTableSizeV2(
        self,
        table_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def LoopCond(
        self,
        input: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def LowerBound(
        self,
        sorted_inputs: _Any,
        values: _Any,
        *,
        T: _Type | None = None,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Lu(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        output_idx_type: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def MakeIterator(
        self,
        dataset: _Any,
        iterator: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def MakeQuantileSummaries(
        self,
        dense_float_features: _Any,
        sparse_float_feature_indices: _Any,
        sparse_float_feature_values: _Any,
        sparse_float_feature_shapes: _Any,
        example_weights: _Any,
        *,
        num_dense_features: _Int | None = None,
        num_sparse_features: _Int | None = None,
        epsilon: _Float,
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def MapAndBatchDataset(
        self,
        input_dataset: _Any,
        other_arguments: _Any,
        batch_size: _Any,
        num_parallel_calls: _Any,
        drop_remainder: _Any,
        *,
        f: _Any,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        preserve_cardinality: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def MapClear(
        self,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def MapDataset(
        self,
        input_dataset: _Any,
        other_arguments: _Any,
        *,
        f: _Any,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        use_inter_op_parallelism: _Bool | None = True,
        preserve_cardinality: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def MapIncompleteSize(
        self,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def MapPeek(
        self,
        key: _Any,
        indices: _Any,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> list[Tensor]: ...
    def MapSize(
        self,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def MapStage(
        self,
        key: _Any,
        indices: _Any,
        values: _Any,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        fake_dtypes: Iterable[_Type] | None = None,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def MapUnstage(
        self,
        key: _Any,
        indices: _Any,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> list[Tensor]: ...
    def MapUnstageNoKey(
        self,
        indices: _Any,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> tuple[Tensor, list[Tensor]]: ...
    def MatMul(
        self,
        a: _Any,
        b: _Any,
        *,
        transpose_a: _Bool | None = False,
        transpose_b: _Bool | None = False,
        T: _Type | None = None,
        grad_a: _Bool | None = False,
        grad_b: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def MatchingFiles(
        self,
        pattern: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixBandPart(
        self,
        input: _Any,
        num_lower: _Any,
        num_upper: _Any,
        *,
        T: _Type | None = None,
        Tindex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixDeterminant(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixDiag(
        self,
        diagonal: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixDiagPart(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixDiagPartV2(
        self,
        input: _Any,
        k: _Any,
        padding_value: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixDiagPartV3(
        self,
        input: _Any,
        k: _Any,
        padding_value: _Any,
        *,
        T: _Type | None = None,
        align: _Text | None = 'RIGHT_LEFT',
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixDiagV2(
        self,
        diagonal: _Any,
        k: _Any,
        num_rows: _Any,
        num_cols: _Any,
        padding_value: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixDiagV3(
        self,
        diagonal: _Any,
        k: _Any,
        num_rows: _Any,
        num_cols: _Any,
        padding_value: _Any,
        *,
        T: _Type | None = None,
        align: _Text | None = 'RIGHT_LEFT',
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixExponential(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixInverse(
        self,
        input: _Any,
        *,
        adjoint: _Bool | None = False,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixSetDiag(
        self,
        input: _Any,
        diagonal: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixSetDiagV2(
        self,
        input: _Any,
        diagonal: _Any,
        k: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixSetDiagV3(
        self,
        input: _Any,
        diagonal: _Any,
        k: _Any,
        *,
        T: _Type | None = None,
        align: _Text | None = 'RIGHT_LEFT',
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixSolve(
        self,
        matrix: _Any,
        rhs: _Any,
        *,
        adjoint: _Bool | None = False,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixSolveLs(
        self,
        matrix: _Any,
        rhs: _Any,
        l2_regularizer: _Any,
        *,
        T: _Type | None = None,
        fast: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def MatrixTriangularSolve(
        self,
        matrix: _Any,
        rhs: _Any,
        *,
        lower: _Bool | None = True,
        adjoint: _Bool | None = False,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Max(
        self,
        input: _Any,
        reduction_indices: _Any,
        *,
        keep_dims: _Bool | None = False,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def MaxIntraOpParallelismDataset(
        self,
        input_dataset: _Any,
        max_intra_op_parallelism: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPool(
        self,
        input: _Any,
        *,
        T: _Type | None = ...,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NHWC',
        explicit_paddings: Iterable[_Int] | None = (),
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPool3D(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NDHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPool3DGrad(
        self,
        orig_input: _Any,
        orig_output: _Any,
        grad: _Any,
        *,
        T: _Type | None = ...,
        TInput: _Type | None = ...,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NDHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPool3DGradGrad(
        self,
        orig_input: _Any,
        orig_output: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NDHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPoolGrad(
        self,
        orig_input: _Any,
        orig_output: _Any,
        grad: _Any,
        *,
        T: _Type | None = ...,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NHWC',
        explicit_paddings: Iterable[_Int] | None = (),
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPoolGradGrad(
        self,
        orig_input: _Any,
        orig_output: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        data_format: _Text | None = 'NHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPoolGradGradWithArgmax(
        self,
        input: _Any,
        grad: _Any,
        argmax: _Any,
        *,
        T: _Type | None = None,
        Targmax: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        include_batch_in_index: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPoolGradV2(
        self,
        orig_input: _Any,
        orig_output: _Any,
        grad: _Any,
        ksize: _Any,
        strides: _Any,
        *,
        T: _Type | None = ...,
        padding: _Text,
        data_format: _Text | None = 'NHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPoolGradWithArgmax(
        self,
        input: _Any,
        grad: _Any,
        argmax: _Any,
        *,
        T: _Type | None = None,
        Targmax: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        include_batch_in_index: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPoolV2(
        self,
        input: _Any,
        ksize: _Any,
        strides: _Any,
        *,
        T: _Type | None = ...,
        padding: _Text,
        data_format: _Text | None = 'NHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def MaxPoolWithArgmax(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        Targmax: _Type | None = ...,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        include_batch_in_index: _Bool | None = False,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def Maximum(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Mean(
        self,
        input: _Any,
        reduction_indices: _Any,
        *,
        keep_dims: _Bool | None = False,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Merge(
        self,
        inputs: _Any,
        *,
        T: _Type | None = None,
        N: _Int | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def MergeSummary(
        self,
        inputs: _Any,
        *,
        N: _Int | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MergeV2Checkpoints(
        self,
        checkpoint_prefixes: _Any,
        destination_prefix: _Any,
        *,
        delete_old_dirs: _Bool | None = True,
        allow_missing_files: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def Min(
        self,
        input: _Any,
        reduction_indices: _Any,
        *,
        keep_dims: _Bool | None = False,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Minimum(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MirrorPad(
        self,
        input: _Any,
        paddings: _Any,
        *,
        T: _Type | None = None,
        Tpaddings: _Type | None = ...,
        mode: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def MirrorPadGrad(
        self,
        input: _Any,
        paddings: _Any,
        *,
        T: _Type | None = None,
        Tpaddings: _Type | None = ...,
        mode: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def Mod(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ModelDataset(
        self,
        input_dataset: _Any,
        *,
        algorithm: _Int | None = 0,
        cpu_budget: _Int | None = 0,
        ram_budget: _Int | None = 0,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Mul(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def MulNoNan(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Multinomial(
        self,
        logits: _Any,
        num_samples: _Any,
        *,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        T: _Type | None = None,
        output_dtype: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def MutableDenseHashTableV2(
        self,
        empty_key: _Any,
        deleted_key: _Any,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        use_node_name_sharing: _Bool | None = False,
        key_dtype: _Type | None = None,
        value_dtype: _Type,
        value_shape: _Shape | None = (),
        initial_num_buckets: _Int | None = 131072,
        max_load_factor: _Float | None = 0.800000011920929,
        name: str | None = None,
    ) -> Tensor: ...
    def MutableHashTableOfTensorsV2(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        use_node_name_sharing: _Bool | None = False,
        key_dtype: _Type,
        value_dtype: _Type,
        value_shape: _Shape | None = (),
        name: str | None = None,
    ) -> Tensor: ...
    def MutableHashTableV2(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        use_node_name_sharing: _Bool | None = False,
        key_dtype: _Type,
        value_dtype: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def Ndtri(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def NearestNeighbors(
        self,
        points: _Any,
        centers: _Any,
        k: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def Neg(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def NextAfter(
        self,
        x1: _Any,
        x2: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def NextIteration(
        self,
        data: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def NoOp(
        self,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def NonMaxSuppression(
        self,
        boxes: _Any,
        scores: _Any,
        max_output_size: _Any,
        *,
        iou_threshold: _Float | None = 0.5,
        name: str | None = None,
    ) -> Tensor: ...
    def NonMaxSuppressionV2(
        self,
        boxes: _Any,
        scores: _Any,
        max_output_size: _Any,
        iou_threshold: _Any,
        *,
        T: _Type | None = ...,
        T_threshold: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def NonMaxSuppressionV3(
        self,
        boxes: _Any,
        scores: _Any,
        max_output_size: _Any,
        iou_threshold: _Any,
        score_threshold: _Any,
        *,
        T: _Type | None = ...,
        T_threshold: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def NonMaxSuppressionV4(
        self,
        boxes: _Any,
        scores: _Any,
        max_output_size: _Any,
        iou_threshold: _Any,
        score_threshold: _Any,
        *,
        T: _Type | None = ...,
        T_threshold: _Type | None = ...,
        pad_to_max_output_size: _Bool | None = False,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def NonMaxSuppressionV5(
        self,
        boxes: _Any,
        scores: _Any,
        max_output_size: _Any,
        iou_threshold: _Any,
        score_threshold: _Any,
        soft_nms_sigma: _Any,
        *,
        T: _Type | None = ...,
        pad_to_max_output_size: _Bool | None = False,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def NonMaxSuppressionWithOverlaps(
        self,
        overlaps: _Any,
        scores: _Any,
        max_output_size: _Any,
        overlap_threshold: _Any,
        score_threshold: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def NotEqual(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        incompatible_shape_error: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def OneHot(
        self,
        indices: _Any,
        depth: _Any,
        on_value: _Any,
        off_value: _Any,
        *,
        axis: _Int | None = -1,
        T: _Type | None = None,
        TI: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def OneShotIterator(
        self,
        *,
        dataset_factory: _Any,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def OnesLike(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def OptimizeDataset(
        self,
        input_dataset: _Any,
        optimizations: _Any,
        *,
        optimization_configs: Iterable[_Text] | None = (),
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def OptimizeDatasetV2(
        self,
        input_dataset: _Any,
        optimizations_enabled: _Any,
        optimizations_disabled: _Any,
        optimizations_default: _Any,
        *,
        optimization_configs: Iterable[_Text] | None = (),
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def OptionalFromValue(
        self,
        components: _Any,
        *,
        Toutput_types: Iterable[_Type] | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def OptionalGetValue(
        self,
        optional: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> list[Tensor]: ...
    def OptionalHasValue(
        self,
        optional: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def OptionalNone(
        self,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def OptionsDataset(
        self,
        input_dataset: _Any,
        *,
        serialized_options: _Text,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def OrderedMapClear(
        self,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def OrderedMapIncompleteSize(
        self,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def OrderedMapPeek(
        self,
        key: _Any,
        indices: _Any,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> list[Tensor]: ...
    def OrderedMapSize(
        self,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def OrderedMapStage(
        self,
        key: _Any,
        indices: _Any,
        values: _Any,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        fake_dtypes: Iterable[_Type] | None = None,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def OrderedMapUnstage(
        self,
        key: _Any,
        indices: _Any,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> list[Tensor]: ...
    def OrderedMapUnstageNoKey(
        self,
        indices: _Any,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> tuple[Tensor, list[Tensor]]: ...
    def Pack(
        self,
        values: _Any,
        *,
        N: _Int | None = None,
        T: _Type | None = None,
        axis: _Int | None = 0,
        name: str | None = None,
    ) -> Tensor: ...
    def Pad(
        self,
        input: _Any,
        paddings: _Any,
        *,
        T: _Type | None = None,
        Tpaddings: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def PadV2(
        self,
        input: _Any,
        paddings: _Any,
        constant_values: _Any,
        *,
        T: _Type | None = None,
        Tpaddings: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def PaddedBatchDataset(
        self,
        input_dataset: _Any,
        batch_size: _Any,
        padded_shapes: _Any,
        padding_values: _Any,
        *,
        Toutput_types: Iterable[_Type] | None = None,
        output_shapes: Iterable[_Shape],
        N: _Int | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def PaddedBatchDatasetV2(
        self,
        input_dataset: _Any,
        batch_size: _Any,
        padded_shapes: _Any,
        padding_values: _Any,
        drop_remainder: _Any,
        *,
        parallel_copy: _Bool | None = False,
        Toutput_types: Iterable[_Type] | None = None,
        output_shapes: Iterable[_Shape],
        N: _Int | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def PaddingFIFOQueueV2(
        self,
        *,
        component_types: Iterable[_Type],
        shapes: Iterable[_Shape] | None = (),
        capacity: _Int | None = -1,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def ParallelConcat(
        self,
        values: _Any,
        *,
        N: _Int | None = None,
        T: _Type | None = None,
        shape: _Shape,
        name: str | None = None,
    ) -> Tensor: ...
    def ParallelDynamicStitch(
        self,
        indices: _Any,
        data: _Any,
        *,
        N: _Int | None = None,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ParallelInterleaveDatasetV2(
        self,
        input_dataset: _Any,
        other_arguments: _Any,
        cycle_length: _Any,
        block_length: _Any,
        num_parallel_calls: _Any,
        *,
        f: _Any,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        sloppy: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def ParallelInterleaveDatasetV4(
        self,
        input_dataset: _Any,
        other_arguments: _Any,
        cycle_length: _Any,
        block_length: _Any,
        buffer_output_elements: _Any,
        prefetch_input_elements: _Any,
        num_parallel_calls: _Any,
        *,
        f: _Any,
        deterministic: _Text | None = 'default',
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def ParallelMapDataset(
        self,
        input_dataset: _Any,
        other_arguments: _Any,
        num_parallel_calls: _Any,
        *,
        f: _Any,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        use_inter_op_parallelism: _Bool | None = True,
        sloppy: _Bool | None = False,
        preserve_cardinality: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def ParallelMapDatasetV2(
        self,
        input_dataset: _Any,
        other_arguments: _Any,
        num_parallel_calls: _Any,
        *,
        f: _Any,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        use_inter_op_parallelism: _Bool | None = True,
        deterministic: _Text | None = 'default',
        preserve_cardinality: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def ParameterizedTruncatedNormal(
        self,
        shape: _Any,
        means: _Any,
        stdevs: _Any,
        minvals: _Any,
        maxvals: _Any,
        *,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        dtype: _Type | None = None,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ParseExample(
        self,
        serialized: _Any,
        names: _Any,
        sparse_keys: _Any,
        dense_keys: _Any,
        dense_defaults: _Any,
        *,
        Nsparse: _Int | None = None,
        Ndense: _Int | None = None,
        sparse_types: Iterable[_Type],
        Tdense: Iterable[_Type] | None = None,
        dense_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]: ...
    def ParseExampleV2(
        self,
        serialized: _Any,
        names: _Any,
        sparse_keys: _Any,
        dense_keys: _Any,
        ragged_keys: _Any,
        dense_defaults: _Any,
        *,
        Tdense: Iterable[_Type] | None = None,
        num_sparse: _Int,
        sparse_types: Iterable[_Type],
        ragged_value_types: Iterable[_Type],
        ragged_split_types: Iterable[_Type],
        dense_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor]]: ...
    def ParseSequenceExample(
        self,
        serialized: _Any,
        debug_name: _Any,
        context_dense_defaults: _Any,
        *,
        feature_list_dense_missing_assumed_empty: Iterable[_Text],
        context_sparse_keys: Iterable[_Text],
        context_dense_keys: Iterable[_Text],
        feature_list_sparse_keys: Iterable[_Text],
        feature_list_dense_keys: Iterable[_Text],
        Ncontext_dense: _Int | None = 0,
        Ncontext_sparse: _Int | None = 0,
        Nfeature_list_sparse: _Int | None = 0,
        Nfeature_list_dense: _Int | None = 0,
        context_sparse_types: Iterable[_Type] | None = (),
        Tcontext_dense: Iterable[_Type] | None = (),
        feature_list_dense_types: Iterable[_Type] | None = (),
        context_dense_shapes: Iterable[_Shape] | None = (),
        feature_list_sparse_types: Iterable[_Type] | None = (),
        feature_list_dense_shapes: Iterable[_Shape] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor]]: ...
    def ParseSequenceExampleV2(
        self,
        serialized: _Any,
        debug_name: _Any,
        context_sparse_keys: _Any,
        context_dense_keys: _Any,
        context_ragged_keys: _Any,
        feature_list_sparse_keys: _Any,
        feature_list_dense_keys: _Any,
        feature_list_ragged_keys: _Any,
        feature_list_dense_missing_assumed_empty: _Any,
        context_dense_defaults: _Any,
        *,
        Ncontext_sparse: _Int | None = 0,
        Nfeature_list_sparse: _Int | None = 0,
        Nfeature_list_dense: _Int | None = 0,
        context_sparse_types: Iterable[_Type] | None = (),
        Tcontext_dense: Iterable[_Type] | None = (),
        feature_list_dense_types: Iterable[_Type] | None = (),
        context_dense_shapes: Iterable[_Shape] | None = (),
        feature_list_sparse_types: Iterable[_Type] | None = (),
        feature_list_dense_shapes: Iterable[_Shape] | None = (),
        context_ragged_value_types: Iterable[_Type] | None = (),
        context_ragged_split_types: Iterable[_Type] | None = (),
        feature_list_ragged_value_types: Iterable[_Type] | None = (),
        feature_list_ragged_split_types: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor]]: ...
    def ParseSingleExample(
        self,
        serialized: _Any,
        dense_defaults: _Any,
        *,
        num_sparse: _Int,
        sparse_keys: Iterable[_Text],
        dense_keys: Iterable[_Text],
        sparse_types: Iterable[_Type],
        Tdense: Iterable[_Type] | None = None,
        dense_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]: ...
    def ParseSingleSequenceExample(
        self,
        serialized: _Any,
        feature_list_dense_missing_assumed_empty: _Any,
        context_sparse_keys: _Any,
        context_dense_keys: _Any,
        feature_list_sparse_keys: _Any,
        feature_list_dense_keys: _Any,
        context_dense_defaults: _Any,
        debug_name: _Any,
        *,
        Ncontext_dense: _Int | None = 0,
        Ncontext_sparse: _Int | None = 0,
        Nfeature_list_sparse: _Int | None = 0,
        Nfeature_list_dense: _Int | None = 0,
        context_sparse_types: Iterable[_Type] | None = (),
        Tcontext_dense: Iterable[_Type] | None = (),
        feature_list_dense_types: Iterable[_Type] | None = (),
        context_dense_shapes: Iterable[_Shape] | None = (),
        feature_list_sparse_types: Iterable[_Type] | None = (),
        feature_list_dense_shapes: Iterable[_Shape] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor], list[Tensor]]: ...
    def ParseTensor(
        self,
        serialized: _Any,
        *,
        out_type: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def PartitionedCall(
        self,
        args: _Any,
        *,
        Tin: Iterable[_Type] | None = None,
        Tout: Iterable[_Type],
        f: _Any,
        config: _Text | None = '',
        config_proto: _Text | None = '',
        executor_type: _Text | None = '',
        _saved: Iterable[_Text] | None = (),
        _Tsaved: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def Placeholder(
        self,
        *,
        dtype: _Type,
        shape: _Shape | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def PlaceholderWithDefault(
        self,
        input: _Any,
        *,
        dtype: _Type | None = None,
        shape: _Shape,
        name: str | None = None,
    ) -> Tensor: ...
    def Polygamma(
        self,
        a: _Any,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def PopulationCount(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Pow(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def PrefetchDataset(
        self,
        input_dataset: _Any,
        buffer_size: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        slack_period: _Int | None = 0,
        legacy_autotune: _Bool | None = True,
        buffer_size_min: _Int | None = 0,
        name: str | None = None,
    ) -> Tensor: ...
    def PreventGradient(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        message: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def Print(
        self,
        input: _Any,
        data: _Any,
        *,
        T: _Type | None = None,
        U: Iterable[_Type] | None = None,
        message: _Text | None = '',
        first_n: _Int | None = -1,
        summarize: _Int | None = 3,
        name: str | None = None,
    ) -> Tensor: ...
    def PrintV2(
        self,
        input: _Any,
        *,
        output_stream: _Text | None = 'stderr',
        end: _Text | None = '\n',
        name: str | None = None,
    ) -> Operation: ...
    def PriorityQueueV2(
        self,
        *,
        component_types: Iterable[_Type] | None = (),
        shapes: Iterable[_Shape],
        capacity: _Int | None = -1,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def PrivateThreadPoolDataset(
        self,
        input_dataset: _Any,
        num_threads: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Prod(
        self,
        input: _Any,
        reduction_indices: _Any,
        *,
        keep_dims: _Bool | None = False,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def PyFunc(
        self,
        input: _Any,
        *,
        token: _Text,
        Tin: Iterable[_Type] | None = None,
        Tout: Iterable[_Type],
        name: str | None = None,
    ) -> list[Tensor]: ...
    def PyFuncStateless(
        self,
        input: _Any,
        *,
        token: _Text,
        Tin: Iterable[_Type] | None = None,
        Tout: Iterable[_Type],
        name: str | None = None,
    ) -> list[Tensor]: ...
    def PythonGeneratorDataset(
        self,
        args: _Any,
        *,
        token: _Text,
        Targs: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def PythonStageDataset(
        self,
        input_dataset: _Any,
        args: _Any,
        *,
        token: _Text,
        Targs: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Qr(
        self,
        input: _Any,
        *,
        full_matrices: _Bool | None = False,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def QuantileAccumulatorAddSummaries(
        self,
        quantile_accumulator_handles: _Any,
        stamp_token: _Any,
        summaries: _Any,
        *,
        num_resource_handles: _Int | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def QuantileAccumulatorDeserialize(
        self,
        quantile_accumulator_handle: _Any,
        stamp_token: _Any,
        stream_state: _Any,
        are_buckets_ready: _Any,
        buckets: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def QuantileAccumulatorFlush(
        self,
        quantile_accumulator_handle: _Any,
        stamp_token: _Any,
        next_stamp_token: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def QuantileAccumulatorFlushSummary(
        self,
        quantile_accumulator_handle: _Any,
        stamp_token: _Any,
        next_stamp_token: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def QuantileAccumulatorGetBuckets(
        self,
        quantile_accumulator_handles: _Any,
        stamp_token: _Any,
        *,
        num_resource_handles: _Int | None = None,
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def QuantileAccumulatorIsInitialized(
        self,
        quantile_accumulator_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def QuantileAccumulatorSerialize(
        self,
        quantile_accumulator_handle: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
    def QuantileBuckets(
        self,
        dense_float_features: _Any,
        sparse_float_feature_indices: _Any,
        sparse_float_feature_values: _Any,
        sparse_float_feature_shapes: _Any,
        example_weights: _Any,
        *,
        num_dense_features: _Int | None = None,
        num_sparse_features: _Int | None = None,
        dense_config: Iterable[_Text],
        sparse_config: Iterable[_Text],
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def QuantileStreamResourceHandleOp(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def Quantiles(
        self,
        dense_values: _Any,
        sparse_values: _Any,
        dense_buckets: _Any,
        sparse_buckets: _Any,
        sparse_indices: _Any,
        *,
        num_dense_features: _Int | None = None,
        num_sparse_features: _Int | None = None,
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def QuantizeAndDequantizeV2(
        self,
        input: _Any,
        input_min: _Any,
        input_max: _Any,
        *,
        signed_input: _Bool | None = True,
        num_bits: _Int | None = 8,
        range_given: _Bool | None = False,
        T: _Type | None = None,
        round_mode: _Text | None = 'HALF_TO_EVEN',
        narrow_range: _Bool | None = False,
        axis: _Int | None = -1,
        name: str | None = None,
    ) -> Tensor: ...
    def QuantizeDownAndShrinkRange(
        self,
        input: _Any,
        input_min: _Any,
        input_max: _Any,
        *,
        Tinput: _Type | None = None,
        out_type: _Type,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizeV2(
        self,
        input: _Any,
        min_range: _Any,
        max_range: _Any,
        *,
        T: _Type,
        mode: _Text | None = 'MIN_COMBINED',
        round_mode: _Text | None = 'HALF_AWAY_FROM_ZERO',
        narrow_range: _Bool | None = False,
        axis: _Int | None = -1,
        ensure_minimum_range: _Float | None = 0.01,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedAdd(
        self,
        x: _Any,
        y: _Any,
        min_x: _Any,
        max_x: _Any,
        min_y: _Any,
        max_y: _Any,
        *,
        T1: _Type | None = None,
        T2: _Type | None = None,
        Toutput: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedAvgPool(
        self,
        input: _Any,
        min_input: _Any,
        max_input: _Any,
        *,
        T: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedBiasAdd(
        self,
        input: _Any,
        bias: _Any,
        min_input: _Any,
        max_input: _Any,
        min_bias: _Any,
        max_bias: _Any,
        *,
        T1: _Type | None = None,
        T2: _Type | None = None,
        out_type: _Type,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedConcat(
        self,
        concat_dim: _Any,
        values: _Any,
        input_mins: _Any,
        input_maxes: _Any,
        *,
        N: _Int | None = None,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedConv2D(
        self,
        input: _Any,
        filter: _Any,
        min_input: _Any,
        max_input: _Any,
        min_filter: _Any,
        max_filter: _Any,
        *,
        Tinput: _Type | None = None,
        Tfilter: _Type | None = None,
        out_type: _Type | None = ...,
        strides: Iterable[_Int],
        padding: _Text,
        dilations: Iterable[_Int] | None = (1, 1, 1, 1),
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedMatMul(
        self,
        a: _Any,
        b: _Any,
        min_a: _Any,
        max_a: _Any,
        min_b: _Any,
        max_b: _Any,
        *,
        T1: _Type | None = None,
        T2: _Type | None = None,
        Toutput: _Type | None = ...,
        transpose_a: _Bool | None = False,
        transpose_b: _Bool | None = False,
        Tactivation: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedMaxPool(
        self,
        input: _Any,
        min_input: _Any,
        max_input: _Any,
        *,
        T: _Type | None = None,
        ksize: Iterable[_Int],
        strides: Iterable[_Int],
        padding: _Text,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedMul(
        self,
        x: _Any,
        y: _Any,
        min_x: _Any,
        max_x: _Any,
        min_y: _Any,
        max_y: _Any,
        *,
        T1: _Type | None = None,
        T2: _Type | None = None,
        Toutput: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedRelu(
        self,
        features: _Any,
        min_features: _Any,
        max_features: _Any,
        *,
        Tinput: _Type | None = None,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedRelu6(
        self,
        features: _Any,
        min_features: _Any,
        max_features: _Any,
        *,
        Tinput: _Type | None = None,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QuantizedReluX(
        self,
        features: _Any,
        max_value: _Any,
        min_features: _Any,
        max_features: _Any,
        *,
        Tinput: _Type | None = None,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def QueueCloseV2(
        self,
        handle: _Any,
        *,
        cancel_pending_enqueues: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def QueueDequeueManyV2(
        self,
        handle: _Any,
        n: _Any,
        *,
        component_types: Iterable[_Type],
        timeout_ms: _Int | None = -1,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def QueueDequeueUpToV2(
        self,
        handle: _Any,
        n: _Any,
        *,
        component_types: Iterable[_Type],
        timeout_ms: _Int | None = -1,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def QueueDequeueV2(
        self,
        handle: _Any,
        *,
        component_types: Iterable[_Type],
        timeout_ms: _Int | None = -1,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def QueueEnqueueManyV2(
        self,
        handle: _Any,
        components: _Any,
        *,
        Tcomponents: Iterable[_Type] | None = None,
        timeout_ms: _Int | None = -1,
        name: str | None = None,
    ) -> Operation: ...
    def QueueEnqueueV2(
        self,
        handle: _Any,
        components: _Any,
        *,
        Tcomponents: Iterable[_Type] | None = None,
        timeout_ms: _Int | None = -1,
        name: str | None = None,
    ) -> Operation: ...
    def QueueIsClosedV2(
        self,
        handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def QueueSizeV2(
        self,
        handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def RFFT(
        self,
        input: _Any,
        fft_length: _Any,
        *,
        Treal: _Type | None = ...,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def RFFT2D(
        self,
        input: _Any,
        fft_length: _Any,
        *,
        Treal: _Type | None = ...,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def RFFT3D(
        self,
        input: _Any,
        fft_length: _Any,
        *,
        Treal: _Type | None = ...,
        Tcomplex: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def RGBToHSV(
        self,
        images: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def RaggedCheckDense(
        self,
        row_splits: _Any,
        rows: _Any,
        columns: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RaggedCheckSplits(
        self,
        row_splits: _Any,
        nvals: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RaggedGather(
        self,
        params_nested_splits: _Any,
        params_dense_values: _Any,
        indices: _Any,
        *,
        Tvalues: _Type | None = None,
        Tindices: _Type | None = None,
        Tsplits: _Type | None = ...,
        PARAMS_RAGGED_RANK: _Int | None = None,
        OUTPUT_RAGGED_RANK: _Int,
        name: str | None = None,
    ) -> tuple[list[Tensor], Tensor]: ...
    def RaggedRange(
        self,
        starts: _Any,
        limits: _Any,
        deltas: _Any,
        *,
        T: _Type | None = ...,
        Tsplits: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def RaggedRowIds(
        self,
        row_splits: _Any,
        nvals: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RaggedRowIdsToSplits(
        self,
        value_rowids: _Any,
        nrows: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RaggedSameSplits(
        self,
        a: _Any,
        b: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RaggedTensorToSparse(
        self,
        rt_nested_splits: _Any,
        rt_dense_values: _Any,
        *,
        RAGGED_RANK: _Int | None = None,
        T: _Type | None = None,
        Tsplits: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def RaggedTensorToTensor(
        self,
        shape: _Any,
        values: _Any,
        default_value: _Any,
        row_partition_tensors: _Any,
        *,
        T: _Type | None = None,
        Tindex: _Type | None = None,
        Tshape: _Type | None = None,
        num_row_partition_tensors: _Int | None = None,
        row_partition_types: Iterable[_Text],
        name: str | None = None,
    ) -> Tensor: ...
    def RandomDataset(
        self,
        seed: _Any,
        seed2: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def RandomGamma(
        self,
        shape: _Any,
        alpha: _Any,
        *,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        S: _Type | None = None,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RandomGammaGrad(
        self,
        alpha: _Any,
        sample: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RandomPoisson(
        self,
        shape: _Any,
        rate: _Any,
        *,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        S: _Type | None = None,
        dtype: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RandomPoissonV2(
        self,
        shape: _Any,
        rate: _Any,
        *,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        S: _Type | None = None,
        R: _Type | None = ...,
        dtype: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def RandomShuffle(
        self,
        value: _Any,
        *,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RandomShuffleQueueV2(
        self,
        *,
        component_types: Iterable[_Type],
        shapes: Iterable[_Shape] | None = (),
        min_after_dequeue: _Int | None = 0,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        capacity: _Int | None = -1,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def RandomStandardNormal(
        self,
        shape: _Any,
        *,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        dtype: _Type,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RandomUniform(
        self,
        shape: _Any,
        *,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        dtype: _Type,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RandomUniformInt(
        self,
        shape: _Any,
        minval: _Any,
        maxval: _Any,
        *,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        Tout: _Type | None = None,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Range(
        self,
        start: _Any,
        limit: _Any,
        delta: _Any,
        *,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def RangeDataset(
        self,
        start: _Any,
        stop: _Any,
        step: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Rank(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ReadFile(
        self,
        filename: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def ReadVariableOp(
        self,
        resource: _Any,
        *,
        dtype: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def ReaderNumRecordsProducedV2(
        self,
        reader_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def ReaderNumWorkUnitsCompletedV2(
        self,
        reader_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def ReaderReadUpToV2(
        self,
        reader_handle: _Any,
        queue_handle: _Any,
        num_records: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def ReaderReadV2(
        self,
        reader_handle: _Any,
        queue_handle: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def ReaderResetV2(
        self,
        reader_handle: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def ReaderRestoreStateV2(
        self,
        reader_handle: _Any,
        state: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def ReaderSerializeStateV2(
        self,
        reader_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def Real(
        self,
        input: _Any,
        *,
        T: _Type | None = ...,
        Tout: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def RealDiv(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Reciprocal(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ReciprocalGrad(
        self,
        y: _Any,
        dy: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RecordInput(
        self,
        *,
        file_pattern: _Text,
        file_random_seed: _Int | None = 301,
        file_shuffle_shift_ratio: _Float | None = 0,
        file_buffer_size: _Int | None = 10000,
        file_parallelism: _Int | None = 16,
        batch_size: _Int | None = 32,
        compression_type: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def ReduceDataset(
        self,
        input_dataset: _Any,
        initial_state: _Any,
        other_arguments: _Any,
        *,
        f: _Any,
        Tstate: Iterable[_Type] | None = None,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        use_inter_op_parallelism: _Bool | None = True,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def ReduceJoin(
        self,
        inputs: _Any,
        reduction_indices: _Any,
        *,
        keep_dims: _Bool | None = False,
        separator: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def RegexFullMatch(
        self,
        input: _Any,
        pattern: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def RegexReplace(
        self,
        input: _Any,
        pattern: _Any,
        rewrite: _Any,
        *,
        replace_global: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def Relu(
        self,
        features: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Relu6(
        self,
        features: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Relu6Grad(
        self,
        gradients: _Any,
        features: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ReluGrad(
        self,
        gradients: _Any,
        features: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RepeatDataset(
        self,
        input_dataset: _Any,
        count: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def ReplicaBarrier(
        self,
        *,
        replicas_to_aggregate: _Int,
        total_num_replicas: _Int,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def ReplicaBarrierRequest(
        self,
        handle: _Any,
        value: _Any,
        *,
        request: _Text,
        replica: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def RequantizationRange(
        self,
        input: _Any,
        input_min: _Any,
        input_max: _Any,
        *,
        Tinput: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def Requantize(
        self,
        input: _Any,
        input_min: _Any,
        input_max: _Any,
        requested_output_min: _Any,
        requested_output_max: _Any,
        *,
        Tinput: _Type | None = None,
        out_type: _Type,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def RequirePositive(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        message: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def Reshape(
        self,
        tensor: _Any,
        shape: _Any,
        *,
        T: _Type | None = None,
        Tshape: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ResizeArea(
        self,
        images: _Any,
        size: _Any,
        *,
        T: _Type | None = None,
        align_corners: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def ResizeBicubic(
        self,
        images: _Any,
        size: _Any,
        *,
        T: _Type | None = None,
        align_corners: _Bool | None = False,
        half_pixel_centers: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def ResizeBicubicGrad(
        self,
        grads: _Any,
        original_image: _Any,
        *,
        T: _Type | None = None,
        align_corners: _Bool | None = False,
        half_pixel_centers: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def ResizeBilinear(
        self,
        images: _Any,
        size: _Any,
        *,
        T: _Type | None = None,
        align_corners: _Bool | None = False,
        half_pixel_centers: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def ResizeBilinearGrad(
        self,
        grads: _Any,
        original_image: _Any,
        *,
        T: _Type | None = None,
        align_corners: _Bool | None = False,
        half_pixel_centers: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def ResizeNearestNeighbor(
        self,
        images: _Any,
        size: _Any,
        *,
        T: _Type | None = None,
        align_corners: _Bool | None = False,
        half_pixel_centers: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def ResizeNearestNeighborGrad(
        self,
        grads: _Any,
        size: _Any,
        *,
        T: _Type | None = None,
        align_corners: _Bool | None = False,
        half_pixel_centers: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def ResourceAccumulatorApplyGradient(
        self,
        handle: _Any,
        local_step: _Any,
        gradient: _Any,
        *,
        dtype: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceAccumulatorNumAccumulated(
        self,
        handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def ResourceAccumulatorSetGlobalStep(
        self,
        handle: _Any,
        new_global_step: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceAccumulatorTakeGradient(
        self,
        handle: _Any,
        num_required: _Any,
        *,
        dtype: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def ResourceApplyAdadelta(
        self,
        var: _Any,
        accum: _Any,
        accum_update: _Any,
        lr: _Any,
        rho: _Any,
        epsilon: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyAdagrad(
        self,
        var: _Any,
        accum: _Any,
        lr: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        update_slots: _Bool | None = True,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyAdagradDA(
        self,
        var: _Any,
        gradient_accumulator: _Any,
        gradient_squared_accumulator: _Any,
        grad: _Any,
        lr: _Any,
        l1: _Any,
        l2: _Any,
        global_step: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyAdagradV2(
        self,
        var: _Any,
        accum: _Any,
        lr: _Any,
        epsilon: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        update_slots: _Bool | None = True,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyAdam(
        self,
        var: _Any,
        m: _Any,
        v: _Any,
        beta1_power: _Any,
        beta2_power: _Any,
        lr: _Any,
        beta1: _Any,
        beta2: _Any,
        epsilon: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        use_nesterov: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyCenteredRMSProp(
        self,
        var: _Any,
        mg: _Any,
        ms: _Any,
        mom: _Any,
        lr: _Any,
        rho: _Any,
        momentum: _Any,
        epsilon: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyFtrl(
        self,
        var: _Any,
        accum: _Any,
        linear: _Any,
        grad: _Any,
        lr: _Any,
        l1: _Any,
        l2: _Any,
        lr_power: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyFtrlV2(
        self,
        var: _Any,
        accum: _Any,
        linear: _Any,
        grad: _Any,
        lr: _Any,
        l1: _Any,
        l2: _Any,
        l2_shrinkage: _Any,
        lr_power: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyGradientDescent(
        self,
        var: _Any,
        alpha: _Any,
        delta: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyMomentum(
        self,
        var: _Any,
        accum: _Any,
        lr: _Any,
        grad: _Any,
        momentum: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        use_nesterov: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyProximalAdagrad(
        self,
        var: _Any,
        accum: _Any,
        lr: _Any,
        l1: _Any,
        l2: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyProximalGradientDescent(
        self,
        var: _Any,
        alpha: _Any,
        l1: _Any,
        l2: _Any,
        delta: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceApplyRMSProp(
        self,
        var: _Any,
        ms: _Any,
        mom: _Any,
        lr: _Any,
        rho: _Any,
        momentum: _Any,
        epsilon: _Any,
        grad: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceConditionalAccumulator(
        self,
        *,
        dtype: _Type,
        shape: _Shape,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        reduction_type: _Text | None = 'MEAN',
        name: str | None = None,
    ) -> Tensor: ...
    def ResourceCountUpTo(
        self,
        resource: _Any,
        *,
        limit: _Int,
        T: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def ResourceGather(
        self,
        resource: _Any,
        indices: _Any,
        *,
        batch_dims: _Int | None = 0,
        validate_indices: _Bool | None = True,
        dtype: _Type,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ResourceGatherNd(
        self,
        resource: _Any,
        indices: _Any,
        *,
        dtype: _Type,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ResourceScatterAdd(
        self,
        resource: _Any,
        indices: _Any,
        updates: _Any,
        *,
        dtype: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterDiv(
        self,
        resource: _Any,
        indices: _Any,
        updates: _Any,
        *,
        dtype: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterMax(
        self,
        resource: _Any,
        indices: _Any,
        updates: _Any,
        *,
        dtype: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterMin(
        self,
        resource: _Any,
        indices: _Any,
        updates: _Any,
        *,
        dtype: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterMul(
        self,
        resource: _Any,
        indices: _Any,
        updates: _Any,
        *,
        dtype: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterNdAdd(
        self,
        ref: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        use_locking: _Bool | None = True,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterNdMax(
        self,
        ref: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        use_locking: _Bool | None = True,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterNdMin(
        self,
        ref: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        use_locking: _Bool | None = True,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterNdSub(
        self,
        ref: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        use_locking: _Bool | None = True,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterNdUpdate(
        self,
        ref: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        use_locking: _Bool | None = True,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterSub(
        self,
        resource: _Any,
        indices: _Any,
        updates: _Any,
        *,
        dtype: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceScatterUpdate(
        self,
        resource: _Any,
        indices: _Any,
        updates: _Any,
        *,
        dtype: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyAdadelta(
        self,
        var: _Any,
        accum: _Any,
        accum_update: _Any,
        lr: _Any,
        rho: _Any,
        epsilon: _Any,
        grad: _Any,
        indices: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyAdagrad(
        self,
        var: _Any,
        accum: _Any,
        lr: _Any,
        grad: _Any,
        indices: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        update_slots: _Bool | None = True,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyAdagradDA(
        self,
        var: _Any,
        gradient_accumulator: _Any,
        gradient_squared_accumulator: _Any,
        grad: _Any,
        indices: _Any,
        lr: _Any,
        l1: _Any,
        l2: _Any,
        global_step: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyAdagradV2(
        self,
        var: _Any,
        accum: _Any,
        lr: _Any,
        epsilon: _Any,
        grad: _Any,
        indices: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        update_slots: _Bool | None = True,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyAdam(
        self,
        var: _Any,
        m: _Any,
        v: _Any,
        beta1_power: _Any,
        beta2_power: _Any,
        lr: _Any,
        beta1: _Any,
        beta2: _Any,
        epsilon: _Any,
        grad: _Any,
        indices: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        use_nesterov: _Bool | None = False,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyCenteredRMSProp(
        self,
        var: _Any,
        mg: _Any,
        ms: _Any,
        mom: _Any,
        lr: _Any,
        rho: _Any,
        momentum: _Any,
        epsilon: _Any,
        grad: _Any,
        indices: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyFtrl(
        self,
        var: _Any,
        accum: _Any,
        linear: _Any,
        grad: _Any,
        indices: _Any,
        lr: _Any,
        l1: _Any,
        l2: _Any,
        lr_power: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyFtrlV2(
        self,
        var: _Any,
        accum: _Any,
        linear: _Any,
        grad: _Any,
        indices: _Any,
        lr: _Any,
        l1: _Any,
        l2: _Any,
        l2_shrinkage: _Any,
        lr_power: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyMomentum(
        self,
        var: _Any,
        accum: _Any,
        lr: _Any,
        grad: _Any,
        indices: _Any,
        momentum: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        use_nesterov: _Bool | None = False,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyProximalAdagrad(
        self,
        var: _Any,
        accum: _Any,
        lr: _Any,
        l1: _Any,
        l2: _Any,
        grad: _Any,
        indices: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyProximalGradientDescent(
        self,
        var: _Any,
        alpha: _Any,
        l1: _Any,
        l2: _Any,
        grad: _Any,
        indices: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceSparseApplyRMSProp(
        self,
        var: _Any,
        ms: _Any,
        mom: _Any,
        lr: _Any,
        rho: _Any,
        momentum: _Any,
        epsilon: _Any,
        grad: _Any,
        indices: _Any,
        *,
        T: _Type | None = None,
        use_locking: _Bool | None = False,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def ResourceStridedSliceAssign(
        self,
        ref: _Any,
        begin: _Any,
        end: _Any,
        strides: _Any,
        value: _Any,
        *,
        T: _Type | None = None,
        Index: _Type | None = None,
        begin_mask: _Int | None = 0,
        end_mask: _Int | None = 0,
        ellipsis_mask: _Int | None = 0,
        new_axis_mask: _Int | None = 0,
        shrink_axis_mask: _Int | None = 0,
        name: str | None = None,
    ) -> Operation: ...
    def RestoreIteratorState(
        self,
        resource_handle: _Any,
        state: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def RestoreV2(
        self,
        prefix: _Any,
        tensor_names: _Any,
        shape_and_slices: _Any,
        *,
        dtypes: Iterable[_Type],
        name: str | None = None,
    ) -> list[Tensor]: ...
    def Reverse(
        self,
        tensor: _Any,
        dims: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ReverseSequence(
        self,
        input: _Any,
        seq_lengths: _Any,
        *,
        seq_dim: _Int,
        batch_dim: _Int | None = 0,
        T: _Type | None = None,
        Tlen: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ReverseV2(
        self,
        tensor: _Any,
        axis: _Any,
        *,
        Tidx: _Type | None = ...,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RightShift(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Rint(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Roll(
        self,
        input: _Any,
        shift: _Any,
        axis: _Any,
        *,
        T: _Type | None = None,
        Tshift: _Type | None = None,
        Taxis: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Round(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Rsqrt(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def RsqrtGrad(
        self,
        y: _Any,
        dy: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SameRows(
        self,
        x: _Any,
        like: _Any,
        *,
        T: _Type | None = None,
        U: _Type | None = None,
        message: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def SampleDistortedBoundingBox(
        self,
        image_size: _Any,
        bounding_boxes: _Any,
        *,
        T: _Type | None = None,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        min_object_covered: _Float | None = 0.10000000149011612,
        aspect_ratio_range: Iterable[_Float] | None = (0.75, 1.3300000429153442),
        area_range: Iterable[_Float] | None = (0.05000000074505806, 1.0),
        max_attempts: _Int | None = 100,
        use_image_if_no_bounding_boxes: _Bool | None = False,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SampleDistortedBoundingBoxV2(
        self,
        image_size: _Any,
        bounding_boxes: _Any,
        min_object_covered: _Any,
        *,
        T: _Type | None = None,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        aspect_ratio_range: Iterable[_Float] | None = (0.75, 1.3300000429153442),
        area_range: Iterable[_Float] | None = (0.05000000074505806, 1.0),
        max_attempts: _Int | None = 100,
        use_image_if_no_bounding_boxes: _Bool | None = False,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SaveHeld(
        self,
        prefix: _Any,
        *,
        key: _Text,
        max_file_bytes: _Int | None = 0,
        name: str | None = None,
    ) -> Operation: ...
    def SaveV2(
        self,
        prefix: _Any,
        tensor_names: _Any,
        shape_and_slices: _Any,
        tensors: _Any,
        *,
        dtypes: Iterable[_Type] | None = None,
        _max_file_bytes: _Int | None = 0,
        name: str | None = None,
    ) -> Operation: ...
    def ScalarSummary(
        self,
        tags: _Any,
        values: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Scan(
        self,
        carry: _Any,
        xs: _Any,
        captures: _Any,
        *,
        Tcarry: Iterable[_Type] | None = None,
        Txs: Iterable[_Type] | None = None,
        Tcaptures: Iterable[_Type] | None = None,
        Tys: Iterable[_Type],
        f: _Any,
        y_lists: Iterable[_Bool],
        reverse: _Bool | None = False,
        vectorized: _Bool | None = False,
        _saved: Iterable[_Text] | None = (),
        _Tsaved: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]: ...
    def ScanDataset(
        self,
        input_dataset: _Any,
        initial_state: _Any,
        other_arguments: _Any,
        *,
        f: _Any,
        Tstate: Iterable[_Type] | None = None,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        preserve_cardinality: _Bool | None = False,
        use_default_device: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def ScatterNd(
        self,
        indices: _Any,
        updates: _Any,
        shape: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def ScatterNdNonAliasingAdd(
        self,
        input: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def SegmentMax(
        self,
        data: _Any,
        segment_ids: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SegmentMean(
        self,
        data: _Any,
        segment_ids: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SegmentMin(
        self,
        data: _Any,
        segment_ids: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SegmentProd(
        self,
        data: _Any,
        segment_ids: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SegmentSum(
        self,
        data: _Any,
        segment_ids: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Select(
        self,
        condition: _Any,
        t: _Any,
        e: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SelectV2(
        self,
        condition: _Any,
        t: _Any,
        e: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SelfAdjointEigV2(
        self,
        input: _Any,
        *,
        compute_v: _Bool | None = True,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def Selu(
        self,
        features: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SeluGrad(
        self,
        gradients: _Any,
        outputs: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SerializeManySparse(
        self,
        sparse_indices: _Any,
        sparse_values: _Any,
        sparse_shape: _Any,
        *,
        T: _Type | None = None,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def SerializeRagged(
        self,
        row_splits: _Any,
        values: _Any,
        *,
        T: _Type | None = None,
        Tsplits: _Type | None = None,
        N: _Int | None = None,
        is_batch: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def SerializeSparse(
        self,
        sparse_indices: _Any,
        sparse_values: _Any,
        sparse_shape: _Any,
        *,
        T: _Type | None = None,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def SerializeTensor(
        self,
        tensor: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SetSize(
        self,
        set_indices: _Any,
        set_values: _Any,
        set_shape: _Any,
        *,
        validate_indices: _Bool | None = True,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SetStatsAggregatorDataset(
        self,
        input_dataset: _Any,
        stats_aggregator: _Any,
        tag: _Any,
        counter_prefix: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Settled(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Shape(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def ShapeN(
        self,
        input: _Any,
        *,
        N: _Int | None = None,
        T: _Type | None = None,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def ShardDataset(
        self,
        input_dataset: _Any,
        num_shards: _Any,
        index: _Any,
        *,
        require_non_empty: _Bool | None = False,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def ShardedFilename(
        self,
        basename: _Any,
        shard: _Any,
        num_shards: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def ShardedFilespec(
        self,
        basename: _Any,
        num_shards: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def ShuffleAndRepeatDataset(
        self,
        input_dataset: _Any,
        buffer_size: _Any,
        seed: _Any,
        seed2: _Any,
        count: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        reshuffle_each_iteration: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def ShuffleDataset(
        self,
        input_dataset: _Any,
        buffer_size: _Any,
        seed: _Any,
        seed2: _Any,
        *,
        reshuffle_each_iteration: _Bool | None = True,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Sigmoid(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SigmoidGrad(
        self,
        y: _Any,
        dy: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Sign(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Sin(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Sinh(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Size(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def SkipDataset(
        self,
        input_dataset: _Any,
        count: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Slice(
        self,
        input: _Any,
        begin: _Any,
        size: _Any,
        *,
        T: _Type | None = None,
        Index: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SliceGrad(
        self,
        shape: _Any,
        begin: _Any,
        dy: _Any,
        *,
        T: _Type | None = None,
        Index: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Snapshot(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Softmax(
        self,
        logits: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SoftmaxCrossEntropyWithLogits(
        self,
        features: _Any,
        labels: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def SoftmaxGrad(
        self,
        gradients: _Any,
        softmax: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Softplus(
        self,
        features: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SoftplusGrad(
        self,
        gradients: _Any,
        features: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Softsign(
        self,
        features: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SoftsignGrad(
        self,
        gradients: _Any,
        features: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SpaceToBatch(
        self,
        input: _Any,
        paddings: _Any,
        *,
        T: _Type | None = None,
        Tpaddings: _Type | None = ...,
        block_size: _Int,
        name: str | None = None,
    ) -> Tensor: ...
    def SpaceToBatchND(
        self,
        input: _Any,
        block_shape: _Any,
        paddings: _Any,
        *,
        T: _Type | None = None,
        Tblock_shape: _Type | None = ...,
        Tpaddings: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def SpaceToDepth(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        block_size: _Int,
        data_format: _Text | None = 'NHWC',
        name: str | None = None,
    ) -> Tensor: ...
    def SparseAccumulatorApplyGradient(
        self,
        handle: _Any,
        local_step: _Any,
        gradient_indices: _Any,
        gradient_values: _Any,
        gradient_shape: _Any,
        *,
        dtype: _Type | None = None,
        has_known_shape: _Bool,
        name: str | None = None,
    ) -> Operation: ...
    def SparseAccumulatorTakeGradient(
        self,
        handle: _Any,
        num_required: _Any,
        *,
        dtype: _Type,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SparseAdd(
        self,
        a_indices: _Any,
        a_values: _Any,
        a_shape: _Any,
        b_indices: _Any,
        b_values: _Any,
        b_shape: _Any,
        thresh: _Any,
        *,
        T: _Type | None = None,
        Treal: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SparseAddGrad(
        self,
        backprop_val_grad: _Any,
        a_indices: _Any,
        b_indices: _Any,
        sum_indices: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def SparseConcat(
        self,
        indices: _Any,
        values: _Any,
        shapes: _Any,
        *,
        concat_dim: _Int,
        N: _Int | None = None,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SparseConditionalAccumulator(
        self,
        *,
        dtype: _Type,
        shape: _Shape,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        reduction_type: _Text | None = 'MEAN',
        name: str | None = None,
    ) -> Tensor: ...
    def SparseCross(
        self,
        indices: _Any,
        values: _Any,
        shapes: _Any,
        dense_inputs: _Any,
        *,
        N: _Int | None = None,
        hashed_output: _Bool,
        num_buckets: _Int,
        hash_key: _Int,
        sparse_types: Iterable[_Type] | None = None,
        dense_types: Iterable[_Type] | None = None,
        out_type: _Type,
        internal_type: _Type,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SparseDenseCwiseAdd(
        self,
        sp_indices: _Any,
        sp_values: _Any,
        sp_shape: _Any,
        dense: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseDenseCwiseDiv(
        self,
        sp_indices: _Any,
        sp_values: _Any,
        sp_shape: _Any,
        dense: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseDenseCwiseMul(
        self,
        sp_indices: _Any,
        sp_values: _Any,
        sp_shape: _Any,
        dense: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseFeatureCross(
        self,
        indices: _Any,
        values: _Any,
        shapes: _Any,
        dense: _Any,
        *,
        N: _Int | None = None,
        hashed_output: _Bool,
        num_buckets: _Int,
        sparse_types: Iterable[_Type] | None = None,
        dense_types: Iterable[_Type] | None = None,
        out_type: _Type,
        internal_type: _Type,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SparseFeatureCrossV2(
        self,
        indices: _Any,
        values: _Any,
        shapes: _Any,
        dense: _Any,
        *,
        N: _Int | None = None,
        hashed_output: _Bool,
        num_buckets: _Int,
        hash_key: _Int,
        sparse_types: Iterable[_Type] | None = None,
        dense_types: Iterable[_Type] | None = None,
        out_type: _Type,
        internal_type: _Type,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SparseFillEmptyRows(
        self,
        indices: _Any,
        values: _Any,
        dense_shape: _Any,
        default_value: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
    def SparseFillEmptyRowsGrad(
        self,
        reverse_index_map: _Any,
        grad_values: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def SparseMatMul(
        self,
        a: _Any,
        b: _Any,
        *,
        transpose_a: _Bool | None = False,
        transpose_b: _Bool | None = False,
        a_is_sparse: _Bool | None = False,
        b_is_sparse: _Bool | None = False,
        Ta: _Type | None = ...,
        Tb: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseReduceMax(
        self,
        input_indices: _Any,
        input_values: _Any,
        input_shape: _Any,
        reduction_axes: _Any,
        *,
        keep_dims: _Bool | None = False,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseReduceMaxSparse(
        self,
        input_indices: _Any,
        input_values: _Any,
        input_shape: _Any,
        reduction_axes: _Any,
        *,
        keep_dims: _Bool | None = False,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SparseReduceSum(
        self,
        input_indices: _Any,
        input_values: _Any,
        input_shape: _Any,
        reduction_axes: _Any,
        *,
        keep_dims: _Bool | None = False,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseReduceSumSparse(
        self,
        input_indices: _Any,
        input_values: _Any,
        input_shape: _Any,
        reduction_axes: _Any,
        *,
        keep_dims: _Bool | None = False,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SparseReorder(
        self,
        input_indices: _Any,
        input_values: _Any,
        input_shape: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def SparseReshape(
        self,
        input_indices: _Any,
        input_shape: _Any,
        new_shape: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def SparseSegmentMean(
        self,
        data: _Any,
        indices: _Any,
        segment_ids: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        Tsegmentids: _Type | None = ...,
        sparse_gradient: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSegmentMeanGrad(
        self,
        grad: _Any,
        indices: _Any,
        segment_ids: _Any,
        output_dim0: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        Tsegmentids: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSegmentMeanWithNumSegments(
        self,
        data: _Any,
        indices: _Any,
        segment_ids: _Any,
        num_segments: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        Tsegmentids: _Type | None = ...,
        Tnumsegments: _Type | None = ...,
        sparse_gradient: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSegmentSqrtN(
        self,
        data: _Any,
        indices: _Any,
        segment_ids: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        Tsegmentids: _Type | None = ...,
        sparse_gradient: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSegmentSqrtNGrad(
        self,
        grad: _Any,
        indices: _Any,
        segment_ids: _Any,
        output_dim0: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        Tsegmentids: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSegmentSqrtNWithNumSegments(
        self,
        data: _Any,
        indices: _Any,
        segment_ids: _Any,
        num_segments: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        Tsegmentids: _Type | None = ...,
        Tnumsegments: _Type | None = ...,
        sparse_gradient: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSegmentSum(
        self,
        data: _Any,
        indices: _Any,
        segment_ids: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        Tsegmentids: _Type | None = ...,
        sparse_gradient: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSegmentSumGrad(
        self,
        grad: _Any,
        indices: _Any,
        segment_ids: _Any,
        output_dim0: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        Tsegmentids: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSegmentSumWithNumSegments(
        self,
        data: _Any,
        indices: _Any,
        segment_ids: _Any,
        num_segments: _Any,
        *,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        Tsegmentids: _Type | None = ...,
        Tnumsegments: _Type | None = ...,
        sparse_gradient: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSlice(
        self,
        indices: _Any,
        values: _Any,
        shape: _Any,
        start: _Any,
        size: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def SparseSliceGrad(
        self,
        backprop_val_grad: _Any,
        input_indices: _Any,
        input_start: _Any,
        output_indices: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSoftmax(
        self,
        sp_indices: _Any,
        sp_values: _Any,
        sp_shape: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseSoftmaxCrossEntropyWithLogits(
        self,
        features: _Any,
        labels: _Any,
        *,
        T: _Type | None = None,
        Tlabels: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def SparseSparseMaximum(
        self,
        a_indices: _Any,
        a_values: _Any,
        a_shape: _Any,
        b_indices: _Any,
        b_values: _Any,
        b_shape: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def SparseSparseMinimum(
        self,
        a_indices: _Any,
        a_values: _Any,
        a_shape: _Any,
        b_indices: _Any,
        b_values: _Any,
        b_shape: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def SparseSplit(
        self,
        split_dim: _Any,
        indices: _Any,
        values: _Any,
        shape: _Any,
        *,
        num_split: _Int,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]: ...
    def SparseTensorDenseAdd(
        self,
        a_indices: _Any,
        a_values: _Any,
        a_shape: _Any,
        b: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseTensorDenseMatMul(
        self,
        a_indices: _Any,
        a_values: _Any,
        a_shape: _Any,
        b: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = ...,
        adjoint_a: _Bool | None = False,
        adjoint_b: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseTensorSliceDataset(
        self,
        indices: _Any,
        values: _Any,
        dense_shape: _Any,
        *,
        Tvalues: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseToDense(
        self,
        sparse_indices: _Any,
        output_shape: _Any,
        sparse_values: _Any,
        default_value: _Any,
        *,
        validate_indices: _Bool | None = True,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SparseToSparseSetOperation(
        self,
        set1_indices: _Any,
        set1_values: _Any,
        set1_shape: _Any,
        set2_indices: _Any,
        set2_values: _Any,
        set2_shape: _Any,
        *,
        set_operation: _Text,
        validate_indices: _Bool | None = True,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def Split(
        self,
        split_dim: _Any,
        value: _Any,
        *,
        num_split: _Int,
        T: _Type | None = None,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def SplitV(
        self,
        value: _Any,
        size_splits: _Any,
        split_dim: _Any,
        *,
        num_split: _Int,
        T: _Type | None = None,
        Tlen: _Type | None = ...,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def SqlDataset(
        self,
        driver_name: _Any,
        data_source_name: _Any,
        query: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Sqrt(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SqrtGrad(
        self,
        y: _Any,
        dy: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Square(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SquaredDifference(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Squeeze(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        squeeze_dims: Iterable[_Int] | None = (),
        name: str | None = None,
    ) -> Tensor: ...
    def Stage(
        self,
        values: _Any,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type] | None = None,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def StageClear(
        self,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Operation: ...
    def StagePeek(
        self,
        index: _Any,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> list[Tensor]: ...
    def StageSize(
        self,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def StatefulPartitionedCall(
        self,
        args: _Any,
        *,
        Tin: Iterable[_Type] | None = None,
        Tout: Iterable[_Type],
        f: _Any,
        config: _Text | None = '',
        config_proto: _Text | None = '',
        executor_type: _Text | None = '',
        _saved: Iterable[_Text] | None = (),
        _Tsaved: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def StatelessCase(
        self,
        branch_index: _Any,
        input: _Any,
        *,
        Tin: Iterable[_Type] | None = None,
        Tout: Iterable[_Type],
        branches: Iterable[_Any],
        output_shapes: Iterable[_Shape] | None = (),
        _saved: Iterable[_Text] | None = (),
        _Tsaved: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def StatelessIf(
        self,
        cond: _Any,
        input: _Any,
        *,
        Tcond: _Type | None = None,
        Tin: Iterable[_Type] | None = None,
        Tout: Iterable[_Type],
        then_branch: _Any,
        else_branch: _Any,
        output_shapes: Iterable[_Shape] | None = (),
        _saved: Iterable[_Text] | None = (),
        _Tsaved: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def StatelessMultinomial(
        self,
        logits: _Any,
        num_samples: _Any,
        seed: _Any,
        *,
        T: _Type | None = None,
        Tseed: _Type | None = ...,
        output_dtype: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def StatelessRandomNormal(
        self,
        shape: _Any,
        seed: _Any,
        *,
        dtype: _Type | None = ...,
        T: _Type | None = ...,
        Tseed: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def StatelessRandomUniform(
        self,
        shape: _Any,
        seed: _Any,
        *,
        dtype: _Type | None = ...,
        T: _Type | None = ...,
        Tseed: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def StatelessRandomUniformInt(
        self,
        shape: _Any,
        seed: _Any,
        minval: _Any,
        maxval: _Any,
        *,
        dtype: _Type | None = None,
        T: _Type | None = None,
        Tseed: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def StatelessSampleDistortedBoundingBox(
        self,
        image_size: _Any,
        bounding_boxes: _Any,
        min_object_covered: _Any,
        seed: _Any,
        *,
        T: _Type | None = None,
        Tseed: _Type | None = None,
        aspect_ratio_range: Iterable[_Float] | None = (0.75, 1.3300000429153442),
        area_range: Iterable[_Float] | None = (0.05000000074505806, 1.0),
        max_attempts: _Int | None = 100,
        use_image_if_no_bounding_boxes: _Bool | None = False,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def StatelessScan(
        self,
        carry: _Any,
        xs: _Any,
        captures: _Any,
        *,
        Tcarry: Iterable[_Type] | None = None,
        Txs: Iterable[_Type] | None = None,
        Tcaptures: Iterable[_Type] | None = None,
        Tys: Iterable[_Type],
        f: _Any,
        y_lists: Iterable[_Bool],
        reverse: _Bool | None = False,
        vectorized: _Bool | None = False,
        _saved: Iterable[_Text] | None = (),
        _Tsaved: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]: ...
    def StatelessTruncatedNormal(
        self,
        shape: _Any,
        seed: _Any,
        *,
        dtype: _Type | None = ...,
        T: _Type | None = ...,
        Tseed: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def StatelessWhile(
        self,
        input: _Any,
        *,
        T: Iterable[_Type] | None = None,
        cond: _Any,
        body: _Any,
        output_shapes: Iterable[_Shape] | None = (),
        parallel_iterations: _Int | None = 10,
        _saved: Iterable[_Text] | None = (),
        _Tsaved: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def StaticRegexFullMatch(
        self,
        input: _Any,
        *,
        pattern: _Text,
        name: str | None = None,
    ) -> Tensor: ...
    def StaticRegexReplace(
        self,
        input: _Any,
        *,
        pattern: _Text,
        rewrite: _Text,
        replace_global: _Bool | None = True,
        name: str | None = None,
    ) -> Tensor: ...
    def StatsAccumulatorScalarAdd(
        self,
        stats_accumulator_handles: _Any,
        stamp_token: _Any,
        partition_ids: _Any,
        feature_ids: _Any,
        gradients: _Any,
        hessians: _Any,
        *,
        num_resource_handles: _Int | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def StatsAccumulatorScalarDeserialize(
        self,
        stats_accumulator_handle: _Any,
        stamp_token: _Any,
        num_updates: _Any,
        partition_ids: _Any,
        feature_ids: _Any,
        gradients: _Any,
        hessians: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def StatsAccumulatorScalarFlush(
        self,
        stats_accumulator_handle: _Any,
        stamp_token: _Any,
        next_stamp_token: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def StatsAccumulatorScalarIsInitialized(
        self,
        stats_accumulator_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def StatsAccumulatorScalarMakeSummary(
        self,
        partition_ids: _Any,
        feature_ids: _Any,
        gradients: _Any,
        hessians: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
    def StatsAccumulatorScalarResourceHandleOp(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def StatsAccumulatorScalarSerialize(
        self,
        stats_accumulator_handle: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def StatsAccumulatorTensorAdd(
        self,
        stats_accumulator_handles: _Any,
        stamp_token: _Any,
        partition_ids: _Any,
        feature_ids: _Any,
        gradients: _Any,
        hessians: _Any,
        *,
        num_resource_handles: _Int | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def StatsAccumulatorTensorDeserialize(
        self,
        stats_accumulator_handle: _Any,
        stamp_token: _Any,
        num_updates: _Any,
        partition_ids: _Any,
        feature_ids: _Any,
        gradients: _Any,
        hessians: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def StatsAccumulatorTensorFlush(
        self,
        stats_accumulator_handle: _Any,
        stamp_token: _Any,
        next_stamp_token: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def StatsAccumulatorTensorIsInitialized(
        self,
        stats_accumulator_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def StatsAccumulatorTensorMakeSummary(
        self,
        partition_ids: _Any,
        feature_ids: _Any,
        gradients: _Any,
        hessians: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
    def StatsAccumulatorTensorResourceHandleOp(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def StatsAccumulatorTensorSerialize(
        self,
        stats_accumulator_handle: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def StatsAggregatorHandle(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def StatsAggregatorSummary(
        self,
        iterator: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def StepAlone(
        self,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def StopGradient(
        self,
        input: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def StridedSlice(
        self,
        input: _Any,
        begin: _Any,
        end: _Any,
        strides: _Any,
        *,
        T: _Type | None = None,
        Index: _Type | None = None,
        begin_mask: _Int | None = 0,
        end_mask: _Int | None = 0,
        ellipsis_mask: _Int | None = 0,
        new_axis_mask: _Int | None = 0,
        shrink_axis_mask: _Int | None = 0,
        name: str | None = None,
    ) -> Tensor: ...
    def StridedSliceGrad(
        self,
        shape: _Any,
        begin: _Any,
        end: _Any,
        strides: _Any,
        dy: _Any,
        *,
        T: _Type | None = None,
        Index: _Type | None = None,
        begin_mask: _Int | None = 0,
        end_mask: _Int | None = 0,
        ellipsis_mask: _Int | None = 0,
        new_axis_mask: _Int | None = 0,
        shrink_axis_mask: _Int | None = 0,
        name: str | None = None,
    ) -> Tensor: ...
    def StringFormat(
        self,
        inputs: _Any,
        *,
        T: Iterable[_Type] | None = None,
        template: _Text | None = '%s',
        placeholder: _Text | None = '%s',
        summarize: _Int | None = 3,
        name: str | None = None,
    ) -> Tensor: ...
    def StringJoin(
        self,
        inputs: _Any,
        *,
        N: _Int | None = None,
        separator: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def StringLength(
        self,
        input: _Any,
        *,
        unit: _Text | None = 'BYTE',
        name: str | None = None,
    ) -> Tensor: ...
    def StringLower(
        self,
        input: _Any,
        *,
        encoding: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def StringNGrams(
        self,
        data: _Any,
        data_splits: _Any,
        *,
        separator: _Text,
        ngram_widths: Iterable[_Int],
        left_pad: _Text,
        right_pad: _Text,
        pad_width: _Int,
        preserve_short_sequences: _Bool,
        Tsplits: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def StringSplit(
        self,
        input: _Any,
        delimiter: _Any,
        *,
        skip_empty: _Bool | None = True,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def StringSplitV2(
        self,
        input: _Any,
        sep: _Any,
        *,
        maxsplit: _Int | None = -1,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def StringStrip(
        self,
        input: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def StringToHashBucket(
        self,
        string_tensor: _Any,
        *,
        num_buckets: _Int,
        name: str | None = None,
    ) -> Tensor: ...
    def StringToHashBucketFast(
        self,
        input: _Any,
        *,
        num_buckets: _Int,
        name: str | None = None,
    ) -> Tensor: ...
    def StringToHashBucketStrong(
        self,
        input: _Any,
        *,
        num_buckets: _Int,
        key: Iterable[_Int],
        name: str | None = None,
    ) -> Tensor: ...
    def StringToNumber(
        self,
        string_tensor: _Any,
        *,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def StringUpper(
        self,
        input: _Any,
        *,
        encoding: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def Sub(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Substr(
        self,
        input: _Any,
        pos: _Any,
        len: _Any,
        *,
        T: _Type | None = None,
        unit: _Text | None = 'BYTE',
        name: str | None = None,
    ) -> Tensor: ...
    def Sum(
        self,
        input: _Any,
        reduction_indices: _Any,
        *,
        keep_dims: _Bool | None = False,
        T: _Type | None = None,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def SumLike(
        self,
        x: _Any,
        like: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def SummaryWriter(
        self,
        *,
        shared_name: _Text | None = '',
        container: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def Svd(
        self,
        input: _Any,
        *,
        compute_uv: _Bool | None = True,
        full_matrices: _Bool | None = False,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def Switch(
        self,
        data: _Any,
        pred: _Any,
        *,
        T: _Type | None = None,
        _taken: _Int | None = -1,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def SymbolicGradient(
        self,
        input: _Any,
        *,
        Tin: Iterable[_Type] | None = None,
        Tout: Iterable[_Type],
        f: _Any,
        forward_inputs: _Int,
        forward_types: Iterable[_Type],
        wrt: Iterable[_Int],
        used_outputs: Iterable[_Int],
        name: str | None = None,
    ) -> list[Tensor]: ...
    def TFRecordDataset(
        self,
        filenames: _Any,
        compression_type: _Any,
        buffer_size: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def TFRecordReaderV2(
        self,
        *,
        compression_type: _Text | None = '',
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def TakeDataset(
        self,
        input_dataset: _Any,
        count: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def TakeManySparseFromTensorsMap(
        self,
        sparse_handles: _Any,
        *,
        dtype: _Type,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def TakeWhileDataset(
        self,
        input_dataset: _Any,
        other_arguments: _Any,
        *,
        predicate: _Any,
        Targuments: Iterable[_Type] | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def Tan(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Tanh(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def TanhGrad(
        self,
        y: _Any,
        dy: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorArrayLog(
        self,
        positions: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorArrayUses(
        self,
        positions: _Any,
        *,
        T: Iterable[_Type] | None = None,
        kinds: Iterable[_Int],
        array: _Text,
        writes: _Bool,
        name: str | None = None,
    ) -> Operation: ...
    def TensorDataset(
        self,
        components: _Any,
        *,
        Toutput_types: Iterable[_Type] | None = None,
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListAccumulate(
        self,
        input_handle: _Any,
        index: _Any,
        item: _Any,
        *,
        element_dtype: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListAdd(
        self,
        a: _Any,
        b: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListConcatV2(
        self,
        input_handle: _Any,
        element_shape: _Any,
        leading_dims: _Any,
        *,
        element_dtype: _Type,
        shape_type: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def TensorListElementShape(
        self,
        input_handle: _Any,
        *,
        shape_type: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListFromTensor(
        self,
        tensor: _Any,
        element_shape: _Any,
        *,
        element_dtype: _Type | None = None,
        shape_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListGather(
        self,
        input_handle: _Any,
        indices: _Any,
        element_shape: _Any,
        *,
        element_dtype: _Type,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListGetItem(
        self,
        input_handle: _Any,
        index: _Any,
        element_shape: _Any,
        *,
        element_dtype: _Type,
        Tshape: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListLength(
        self,
        input_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListOneItem(
        self,
        length: _Any,
        index: _Any,
        item: _Any,
        *,
        element_dtype: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListPopBack(
        self,
        input_handle: _Any,
        element_shape: _Any,
        *,
        element_dtype: _Type,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def TensorListPushBack(
        self,
        input_handle: _Any,
        tensor: _Any,
        *,
        element_dtype: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListReserve(
        self,
        element_shape: _Any,
        num_elements: _Any,
        *,
        element_dtype: _Type,
        shape_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListResize(
        self,
        input_handle: _Any,
        size: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListScatterIntoExistingList(
        self,
        input_handle: _Any,
        tensor: _Any,
        indices: _Any,
        *,
        element_dtype: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListScatterV2(
        self,
        tensor: _Any,
        indices: _Any,
        element_shape: _Any,
        num_elements: _Any,
        *,
        element_dtype: _Type | None = None,
        shape_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListSetItem(
        self,
        input_handle: _Any,
        index: _Any,
        item: _Any,
        *,
        element_dtype: _Type | None = None,
        resize_if_index_out_of_bounds: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListSplit(
        self,
        tensor: _Any,
        element_shape: _Any,
        lengths: _Any,
        *,
        element_dtype: _Type | None = None,
        shape_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListStack(
        self,
        input_handle: _Any,
        element_shape: _Any,
        *,
        element_dtype: _Type,
        num_elements: _Int | None = -1,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorListZerosLike(
        self,
        input_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorScatterAdd(
        self,
        tensor: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def TensorScatterMax(
        self,
        tensor: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def TensorScatterMin(
        self,
        tensor: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def TensorScatterSub(
        self,
        tensor: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def TensorScatterUpdate(
        self,
        tensor: _Any,
        indices: _Any,
        updates: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        bad_indices_policy: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def TensorSliceDataset(
        self,
        components: _Any,
        *,
        Toutput_types: Iterable[_Type] | None = None,
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def TensorStridedSliceUpdate(
        self,
        input: _Any,
        begin: _Any,
        end: _Any,
        strides: _Any,
        value: _Any,
        *,
        T: _Type | None = None,
        Index: _Type | None = None,
        begin_mask: _Int | None = 0,
        end_mask: _Int | None = 0,
        ellipsis_mask: _Int | None = 0,
        new_axis_mask: _Int | None = 0,
        shrink_axis_mask: _Int | None = 0,
        name: str | None = None,
    ) -> Tensor: ...
    def TensorSummary(
        self,
        tensor: _Any,
        *,
        T: _Type | None = None,
        description: _Text | None = '',
        labels: Iterable[_Text] | None = (),
        display_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def TensorSummaryV2(
        self,
        tag: _Any,
        tensor: _Any,
        serialized_summary_metadata: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def TextLineDataset(
        self,
        filenames: _Any,
        compression_type: _Any,
        buffer_size: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def TextLineReaderV2(
        self,
        *,
        skip_header_lines: _Int | None = 0,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def ThreadUnsafeUnigramCandidateSampler(
        self,
        true_classes: _Any,
        *,
        num_true: _Int,
        num_sampled: _Int,
        unique: _Bool,
        range_max: _Int,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def Tile(
        self,
        input: _Any,
        multiples: _Any,
        *,
        T: _Type | None = None,
        Tmultiples: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def TopK(
        self,
        input: _Any,
        *,
        k: _Int,
        sorted: _Bool | None = True,
        T: _Type | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def TopKV2(
        self,
        input: _Any,
        k: _Any,
        *,
        sorted: _Bool | None = True,
        T: _Type | None = None,
        Tk: _Type | None = ...,
        index_type: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def Transpose(
        self,
        x: _Any,
        perm: _Any,
        *,
        T: _Type | None = None,
        Tperm: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def TreeEnsembleDeserialize(
        self,
        tree_ensemble_handle: _Any,
        stamp_token: _Any,
        tree_ensemble_config: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def TreeEnsembleIsInitializedOp(
        self,
        tree_ensemble_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def TreeEnsembleSerialize(
        self,
        tree_ensemble_handle: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def TreeEnsembleStampToken(
        self,
        tree_ensemble_handle: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def TreeEnsembleStats(
        self,
        tree_ensemble_handle: _Any,
        stamp_token: _Any,
        *,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]: ...
    def TreeEnsembleUsedHandlers(
        self,
        tree_ensemble_handle: _Any,
        stamp_token: _Any,
        *,
        num_all_handlers: _Int,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def TruncateDiv(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def TruncateMod(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def TruncatedNormal(
        self,
        shape: _Any,
        *,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        dtype: _Type,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def UnbatchDataset(
        self,
        input_dataset: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def UnicodeDecode(
        self,
        input: _Any,
        *,
        input_encoding: _Text,
        errors: _Text | None = 'replace',
        replacement_char: _Int | None = 65533,
        replace_control_characters: _Bool | None = False,
        Tsplits: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def UnicodeDecodeWithOffsets(
        self,
        input: _Any,
        *,
        input_encoding: _Text,
        errors: _Text | None = 'replace',
        replacement_char: _Int | None = 65533,
        replace_control_characters: _Bool | None = False,
        Tsplits: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def UnicodeEncode(
        self,
        input_values: _Any,
        input_splits: _Any,
        *,
        errors: _Text | None = 'replace',
        replacement_char: _Int | None = 65533,
        output_encoding: _Text,
        Tsplits: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def UnicodeTranscode(
        self,
        input: _Any,
        *,
        input_encoding: _Text,
        output_encoding: _Text,
        errors: _Text | None = 'replace',
        replacement_char: _Int | None = 65533,
        replace_control_characters: _Bool | None = False,
        name: str | None = None,
    ) -> Tensor: ...
    def UniformCandidateSampler(
        self,
        true_classes: _Any,
        *,
        num_true: _Int,
        num_sampled: _Int,
        unique: _Bool,
        range_max: _Int,
        seed: _Int | None = 0,
        seed2: _Int | None = 0,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def Unique(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        out_idx: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def UniqueDataset(
        self,
        input_dataset: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def UniqueV2(
        self,
        x: _Any,
        axis: _Any,
        *,
        T: _Type | None = None,
        Taxis: _Type | None = ...,
        out_idx: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor]: ...
    def UniqueWithCounts(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        out_idx: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def UniqueWithCountsV2(
        self,
        x: _Any,
        axis: _Any,
        *,
        T: _Type | None = None,
        Taxis: _Type | None = ...,
        out_idx: _Type | None = ...,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def Unpack(
        self,
        value: _Any,
        *,
        num: _Int,
        T: _Type | None = None,
        axis: _Int | None = 0,
        name: str | None = None,
    ) -> list[Tensor]: ...
    def UnravelIndex(
        self,
        indices: _Any,
        dims: _Any,
        *,
        Tidx: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def UnsortedSegmentJoin(
        self,
        inputs: _Any,
        segment_ids: _Any,
        num_segments: _Any,
        *,
        separator: _Text | None = '',
        Tindices: _Type | None = None,
        Tnumsegments: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def UnsortedSegmentMax(
        self,
        data: _Any,
        segment_ids: _Any,
        num_segments: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        Tnumsegments: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def UnsortedSegmentMin(
        self,
        data: _Any,
        segment_ids: _Any,
        num_segments: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        Tnumsegments: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def UnsortedSegmentProd(
        self,
        data: _Any,
        segment_ids: _Any,
        num_segments: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        Tnumsegments: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def UnsortedSegmentSum(
        self,
        data: _Any,
        segment_ids: _Any,
        num_segments: _Any,
        *,
        T: _Type | None = None,
        Tindices: _Type | None = None,
        Tnumsegments: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Unstage(
        self,
        *,
        capacity: _Int | None = 0,
        memory_limit: _Int | None = 0,
        dtypes: Iterable[_Type],
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> list[Tensor]: ...
    def UpperBound(
        self,
        sorted_inputs: _Any,
        values: _Any,
        *,
        T: _Type | None = None,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def VarHandleOp(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        debug_name: _Text | None = '',
        dtype: _Type,
        shape: _Shape,
        allowed_devices: Iterable[_Text] | None = (),
        name: str | None = None,
    ) -> Tensor: ...
    def VarIsInitializedOp(
        self,
        resource: _Any,
        *,
        name: str | None = None,
    ) -> Tensor: ...
    def VariableShape(
        self,
        input: _Any,
        *,
        out_type: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def Where(
        self,
        input: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Tensor: ...
    def While(
        self,
        input: _Any,
        *,
        T: Iterable[_Type] | None = None,
        cond: _Any,
        body: _Any,
        output_shapes: Iterable[_Shape] | None = (),
        parallel_iterations: _Int | None = 10,
        _saved: Iterable[_Text] | None = (),
        _Tsaved: Iterable[_Type] | None = (),
        name: str | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]: ...
    def WholeFileReaderV2(
        self,
        *,
        container: _Text | None = '',
        shared_name: _Text | None = '',
        name: str | None = None,
    ) -> Tensor: ...
    def WindowDataset(
        self,
        input_dataset: _Any,
        size: _Any,
        shift: _Any,
        stride: _Any,
        drop_remainder: _Any,
        *,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
    def WriteAudioSummary(
        self,
        writer: _Any,
        step: _Any,
        tag: _Any,
        tensor: _Any,
        sample_rate: _Any,
        *,
        max_outputs: _Int | None = 3,
        name: str | None = None,
    ) -> Operation: ...
    def WriteFile(
        self,
        filename: _Any,
        contents: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def WriteGraphSummary(
        self,
        writer: _Any,
        step: _Any,
        tensor: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def WriteHistogramSummary(
        self,
        writer: _Any,
        step: _Any,
        tag: _Any,
        values: _Any,
        *,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Operation: ...
    def WriteImageSummary(
        self,
        writer: _Any,
        step: _Any,
        tag: _Any,
        tensor: _Any,
        bad_color: _Any,
        *,
        max_images: _Int | None = 3,
        T: _Type | None = ...,
        name: str | None = None,
    ) -> Operation: ...
    def WriteRawProtoSummary(
        self,
        writer: _Any,
        step: _Any,
        tensor: _Any,
        *,
        name: str | None = None,
    ) -> Operation: ...
    def WriteScalarSummary(
        self,
        writer: _Any,
        step: _Any,
        tag: _Any,
        value: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def WriteSummary(
        self,
        writer: _Any,
        step: _Any,
        tensor: _Any,
        tag: _Any,
        summary_metadata: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Operation: ...
    def Xdivy(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def XlaCallModule(
        self,
        args: _Any,
        *,
        version: _Int,
        module: _Text,
        Sout: Iterable[_Shape],
        Tout: Iterable[_Type],
        Tin: Iterable[_Type] | None = None,
        platforms: Iterable[_Text] | None = (),
        disabled_checks: Iterable[_Text] | None = (),
        _around: Iterable[_Text] | None = (),
        _backward: _Text | None = '',
        _wrt: Iterable[_Int] | None = (),
        _differentiable: Iterable[_Int] | None = (),
        _kept: Iterable[_Int] | None = (),
        name: str | None = None,
    ) -> list[Tensor]: ...
    def Xlog1py(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Xlogy(
        self,
        x: _Any,
        y: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ZerosLike(
        self,
        x: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def Zeta(
        self,
        x: _Any,
        q: _Any,
        *,
        T: _Type | None = None,
        name: str | None = None,
    ) -> Tensor: ...
    def ZipDataset(
        self,
        input_datasets: _Any,
        *,
        N: _Int | None = None,
        output_types: Iterable[_Type],
        output_shapes: Iterable[_Shape],
        name: str | None = None,
    ) -> Tensor: ...
